"""A process that only searches, for a web process that has more questions at hand than it can answer at once.

`python -m web.search_process FD`: questions come and answers go over that end of a pipe. It ends with whoever holds the other end, and
after a while without a question. It reads the database and writes nothing.
"""

from __future__ import annotations

import logging
import sys
from multiprocessing.connection import Connection
from typing import Any

import msgspec

from memory_core import limits
from memory_core.config import load
from memory_core.domain.embedding import EmbeddingModel
from memory_core.domain.project import Project
from memory_core.models.query_embedder import QueryVector
from memory_core.recall.search import Found, Question, search
from memory_core.recall.vectors import QuestionVector
from memory_core.store.database import Database
from memory_core.store.vector_matrix import VectorMatrix
from workers.logs import configure_terminal

logger = logging.getLogger(__name__)

READY = b"ready"
#: Instead of an answer: whoever asked has to search by itself.
FAILED = b""


class Asked(msgspec.Struct, kw_only=True, frozen=True):
    """A `Question` on its way: its fields, with the vector as bytes."""

    text: str
    projects: tuple[Project, ...] | None
    now: int
    principal: str
    limit: int
    include_expired: bool
    explain: bool
    pages_only: bool
    vector_failed: bool
    judged: int
    vector: bytes | None = None
    model: EmbeddingModel | None = None


def packed(question: Question) -> bytes:
    plain: dict[str, Any] = {
        name: getattr(question, name) for name in Asked.__struct_fields__ if name not in ("vector", "model")
    }
    plain["projects"] = None if question.projects is None else tuple(question.projects)
    if question.vector is not None:
        query = question.vector.query
        plain |= {"vector": query.vector.astype("<f4").tobytes(), "model": query.model}
    return msgspec.msgpack.encode(Asked(**plain))


def found_in(data: bytes) -> Found:
    return msgspec.msgpack.decode(data, type=Found)


def answer_all(connection: Connection, database: Database, idle_seconds: float) -> None:
    """Until the other end is gone, or nothing came for so long."""
    matrix = VectorMatrix()
    connection.send_bytes(READY)
    while connection.poll(idle_seconds):
        try:
            data = connection.recv_bytes(limits.SEARCH_MESSAGE_MAX_BYTES)
            connection.send_bytes(_answer(data, database, matrix))
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return


def _answer(data: bytes, database: Database, matrix: VectorMatrix) -> bytes:
    try:
        question = _question(msgspec.msgpack.decode(data, type=Asked), matrix)
        with database.snapshot() as reading:
            return msgspec.msgpack.encode(search(reading, question))
    except Exception:  # whoever asked meets the same error, and tells of it
        logger.exception("a search failed in its own process", extra={"action": "search_process_failed"})
        return FAILED


def _question(asked: Asked, matrix: VectorMatrix) -> Question:
    vector = None
    if asked.vector is not None and asked.model is not None:
        import numpy

        numbers = numpy.frombuffer(asked.vector, dtype="<f4").astype(numpy.float32)
        vector = QuestionVector(query=QueryVector(model=asked.model, vector=numbers), matrix=matrix)
    plain: dict[str, Any] = {
        name: getattr(asked, name) for name in Asked.__struct_fields__ if name != "model"
    }
    return Question(**{**plain, "vector": vector})


def main(arguments: list[str]) -> int:
    settings = load()
    configure_terminal(settings, "search")
    answer_all(Connection(int(arguments[0])), Database(settings.database), limits.SEARCH_PROCESS_IDLE_SECONDS)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

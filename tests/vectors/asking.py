"""Asking by vector, as search does."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from memory_core.models.query_embedder import QueryVector
from memory_core.recall.vectors import QuestionVector, near
from memory_core.store.database import Database
from memory_core.store.nearest import Near, Scope
from memory_core.store.vector_matrix import VectorMatrix
from tests.factories import Store
from tests.jobs.embedding_model import A, vector_of

#: Never too small for what is in these databases.
ALL = 1_000


@contextmanager
def asking(store: Store) -> Generator[Callable[..., list[Near]]]:
    """Ask by vector; in the projects of these names, None: in all."""
    reader, matrix = Database(store.path), VectorMatrix()

    def asked(
        text: str,
        *projects: str,
        principal: str = "ada",
        include_expired: bool = False,
        limit: int = ALL,
        model: Any = A,
    ) -> list[Near]:
        rows = store.all("SELECT number, name FROM projects")
        numbers = [row["number"] for row in rows if row["name"] in projects] if projects else None
        question = QuestionVector(
            query=QueryVector(model=model, vector=vector_of(text, model)), matrix=matrix
        )
        scope = Scope(
            projects=numbers, owner=principal, now=None if include_expired else store.clock.now_us()
        )
        with reader.snapshot() as reading:
            return near(reading, question, scope, limit)

    yield asked
    reader.close()

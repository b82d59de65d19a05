"""Models that run on this machine, in a process of their own that is started when it is first needed."""

from __future__ import annotations

import fcntl
import logging
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from memory_core import limits
from memory_core.errors import Invalid
from memory_core.models import errors
from memory_core.models.bounds import Bounds
from memory_core.models.local_files import BUILT_IN, LocalModel
from memory_core.models.local_socket import connected
from memory_core.models.local_talk import Answer, Question, receive, send
from memory_core.models.port import NOTHING, Kind
from memory_core.models.wire import Access, EmbedWire, RawVectors, Vendor, embedding_vendors

logger = logging.getLogger(__name__)

_MODULE: Final = "memory_core.models.local_process"
#: Processes that this one has started: closing their standard input would end them.
_started: list[subprocess.Popen[bytes]] = []
_starting = threading.Lock()


@dataclass(frozen=True)
class LocalWire:
    model: LocalModel
    run_dir: Path
    idle_seconds: float = field(default_factory=lambda: limits.LOCAL_IDLE_SECONDS)

    @property
    def _place(self) -> Path:
        return self.run_dir / "embedder.sock"

    def embed(self, texts: list[str], kind: Kind, bounds: Bounds) -> RawVectors:
        rows: list[bytes] = []
        dimensions = 0
        for start in range(0, len(texts), limits.LOCAL_MESSAGE_TEXTS):
            answer = self._answered(texts[start : start + limits.LOCAL_MESSAGE_TEXTS], kind, bounds)
            rows.append(answer.rows)
            dimensions = answer.dimensions
        return _raw(b"".join(rows), len(texts), dimensions, self.model.identity)

    def _answered(self, texts: list[str], kind: Kind, bounds: Bounds) -> Answer:
        question = Question(
            models_dir=str(self.model.models_dir),
            name=self.model.name,
            revision=self.model.manifest.revision,
            texts=tuple(texts),
            is_urgent=kind == "query",
        )
        # A process that was just ending, or was killed, is not the last word.
        for is_last in (False, True):
            bounds.check()
            try:
                with self._connection(bounds) as connection:
                    answer = _asked(connection, question, bounds)
            except OSError as error:
                if is_last:
                    raise errors.Unreachable("the process of the local embedder cannot be reached") from error
                continue
            if answer is not None:
                return _checked(answer)
        raise errors.Unreachable("the process of the local embedder ended while it was asked")

    @contextmanager
    def _connection(self, bounds: Bounds) -> Generator[socket.socket]:
        try:
            connection = connected(self._place, limits.MODEL_POLL_SECONDS)
        except OSError:
            self._start(bounds)
            connection = connected(self._place, limits.MODEL_POLL_SECONDS)
        with connection:
            yield connection

    def _start(self, bounds: Bounds) -> None:
        """Start the process unless somebody else just does, and wait until it listens."""
        self.run_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._alone(bounds):
            if _listens(self._place):
                return
            process = self._spawned()
            while not _listens(self._place):
                bounds.wait(0.02)
                if process.poll() is not None:
                    raise errors.Unreachable(
                        f"the process of the local embedder ended at its start ({process.returncode})"
                    )
        logger.info("the local embedder runs", extra={"action": "local_embedder_started", "pid": process.pid})

    def _spawned(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", _MODULE, str(self._place), str(self.idle_seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        _started[:] = [other for other in _started if other.poll() is None]
        _started.append(process)
        return process

    @contextmanager
    def _alone(self, bounds: Bounds) -> Generator[None]:
        """Of all processes and threads one starts it."""
        while not _starting.acquire(timeout=limits.MODEL_POLL_SECONDS):
            bounds.check()
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(self.run_dir / "embedder.lock", flags, 0o600)
            try:
                while not _got(descriptor):
                    bounds.wait(0.02)
                yield
            finally:
                os.close(descriptor)
        finally:
            _starting.release()


def _asked(connection: socket.socket, question: Question, bounds: Bounds) -> Answer | None:
    """None where the process is gone. Waits in slices, so that a cancelled call ends soon."""
    connection.settimeout(max(bounds.remaining_seconds(), 0.001))
    send(connection, question)
    while True:
        bounds.check()
        connection.settimeout(max(min(limits.MODEL_POLL_SECONDS, bounds.remaining_seconds()), 0.001))
        try:
            # Nothing is taken off until something is there, so that a time-out cuts no message.
            if not connection.recv(1, socket.MSG_PEEK):
                return None
        except TimeoutError:
            continue
        connection.settimeout(max(bounds.remaining_seconds(), 0.001))
        data = receive(connection)
        return None if data is None else msgspec.msgpack.decode(data, type=Answer)


def _checked(answer: Answer) -> Answer:
    if answer.error:
        # Nothing that a retry would change: the files are damaged, or are no model.
        raise errors.NoSuchModel(answer.message)
    return answer


def _raw(rows: bytes, count: int, dimensions: int, model: str) -> RawVectors:
    import numpy

    if len(rows) != 4 * count * dimensions:
        raise errors.Malformed
    vectors = numpy.frombuffer(rows, dtype="<f4").reshape(count, dimensions).astype(numpy.float32)
    return RawVectors(vectors=vectors, usage=NOTHING, model=model, unknown_fields=0)


def _listens(place: Path) -> bool:
    try:
        connected(place, limits.MODEL_POLL_SECONDS).close()
    except OSError:
        return False
    return True


def _got(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _embedding(access: Access) -> EmbedWire:
    if access.local is None or access.run_dir is None:
        raise Invalid("a local model runs only where its files and a run directory are")
    return LocalWire(access.local, access.run_dir)


embedding_vendors.add("local")(
    Vendor(
        title="the local embedder",
        default_model=BUILT_IN.name,
        extra="local",
        module="onnxruntime",
        needs_key=False,
        is_local=True,
        connect=_embedding,
    )
)

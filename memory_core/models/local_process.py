"""The process that runs local models: `python -m memory_core.models.local_process SOCKET`.

One for all processes of a machine's data directory; whoever needs it first starts it. It ends when it was not asked for a while, when its
socket is no longer its own, and with the process that started it, whose end of standard input closes however that one dies. One
text is computed at a time, and a question that somebody waits for goes before those of jobs.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
import threading
import time
from pathlib import Path

import msgspec

from memory_core import limits
from memory_core.errors import CoreError
from memory_core.models import local_files
from memory_core.models.local_runner import LocalRunner
from memory_core.models.local_socket import bound
from memory_core.models.local_talk import Answer, Question, receive, send

logger = logging.getLogger(__name__)


class Turns:
    """Who computes next: the urgent ones first."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._is_taken = False
        self._urgent = 0

    def take(self, *, is_urgent: bool) -> None:
        with self._changed:
            self._urgent += is_urgent
            while self._is_taken or (self._urgent and not is_urgent):
                self._changed.wait()
            self._is_taken = True

    def give_back(self, *, is_urgent: bool) -> None:
        with self._changed:
            self._urgent -= is_urgent
            self._is_taken = False
            self._changed.notify_all()


class LocalProcess:
    def __init__(self, place: Path, idle_seconds: float) -> None:
        self._place = place
        self._idle_seconds = idle_seconds
        self._turns = Turns()
        self._runner: LocalRunner | None = None
        self._asked_at = time.monotonic()
        self._open = 0
        self._lock = threading.Lock()

    def serve(self) -> None:
        with bound(self._place) as listener:
            inode = self._place.stat().st_ino
            listener.settimeout(1.0)
            while not self._is_idle():
                try:
                    connection, _ = listener.accept()
                except TimeoutError:
                    if not _is_still(self._place, inode):
                        return
                    continue
                threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _is_idle(self) -> bool:
        with self._lock:
            return not self._open and time.monotonic() - self._asked_at > self._idle_seconds

    def _talk(self, connection: socket.socket) -> None:
        with self._lock:
            self._open += 1
        try:
            with connection:
                connection.settimeout(limits.LOCAL_IDLE_SECONDS)
                while (data := receive(connection)) is not None:
                    send(connection, self._answer(msgspec.msgpack.decode(data, type=Question)))
        except (OSError, CoreError, msgspec.MsgspecError):
            pass  # who asked is gone, or is no one of ours
        finally:
            with self._lock:
                self._open -= 1
                self._asked_at = time.monotonic()

    def _answer(self, question: Question) -> Answer:
        rows: list[bytes] = []
        dimensions = 0
        try:
            for text in question.texts:
                self._turns.take(is_urgent=question.is_urgent)
                try:
                    vector = self._loaded(question).vector(text)
                finally:
                    self._turns.give_back(is_urgent=question.is_urgent)
                dimensions = len(vector)
                rows.append(vector.astype("<f4").tobytes())
        except CoreError as error:
            return Answer(error=error.code, message=str(error))
        except Exception as error:  # whatever the libraries raise for a file that is no model
            logger.exception("a local model cannot be run", extra={"action": "local_model_failed"})
            return Answer(
                error="local_model_failed", message=f"the local model cannot be run ({type(error).__name__})"
            )
        return Answer(dimensions=dimensions, rows=b"".join(rows))

    def _loaded(self, question: Question) -> LocalRunner:
        """One model at a time; files that were exchanged are read again."""
        runner = self._runner
        if runner is None or (runner.model.name, runner.model.manifest.revision) != (
            question.name,
            question.revision,
        ):
            self._runner = None
            model = local_files.find(Path(question.models_dir), question.name)
            self._runner = runner = LocalRunner(model)
        return runner


def _is_still(place: Path, inode: int) -> bool:
    try:
        return place.stat().st_ino == inode
    except OSError:
        return False


def _end_with_parent() -> None:
    while True:
        try:
            if not os.read(0, 1):
                os._exit(0)
        except OSError:
            os._exit(0)


def main(arguments: list[str]) -> int:
    threading.Thread(target=_end_with_parent, name="parent", daemon=True).start()
    idle = float(arguments[1]) if len(arguments) > 1 else limits.LOCAL_IDLE_SECONDS
    LocalProcess(Path(arguments[0]), idle).serve()
    # Threads of libraries must not hold it up.
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

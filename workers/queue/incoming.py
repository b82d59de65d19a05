"""Bodies that are too large for the stream: files beside it, written by the gate, removed by the writer."""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path

from memory_core import limits
from memory_core.clock import MICROSECONDS
from memory_core.durable import sync_directory
from memory_core.errors import Invalid, StorageStopped, Unavailable
from workers.queue.wire import BodyReference

_NAME = re.compile(r"[0-9a-f]{32}-[0-9a-f]{16}")


class Incoming:
    """The directory of large bodies. A file is complete and synced before the entry that names it is appended."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def put(self, command_id: bytes, body: bytes) -> BodyReference:
        """Store a body; `Unavailable` when the disk does not take it (nothing is left then)."""
        # Not the id alone: a second delivery, or another body under the same id, must not replace
        # what an acknowledged entry names.
        reference = BodyReference(name=f"{command_id.hex()}-{secrets.token_hex(8)}", size=len(body))
        target = self._directory / reference.name
        unfinished = self._directory / f".t-{reference.name}"
        try:
            if not self._directory.is_dir():
                self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
                sync_directory(self._directory.parent)
            _write_synced(unfinished, body)
            unfinished.rename(target)
            sync_directory(self._directory)
        except OSError as error:
            unfinished.unlink(missing_ok=True)
            target.unlink(missing_ok=True)
            raise Unavailable(f"a large body could not be stored: {error.strerror}") from error
        return reference

    def get(self, reference: BodyReference) -> bytes:
        """The body; `Invalid` when there is no such file of that size, `StorageStopped` when it cannot be read."""
        if not _NAME.fullmatch(reference.name):
            raise Invalid("an entry names a body outside its directory")
        try:
            descriptor = os.open(self._directory / reference.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            with open(descriptor, "rb") as file:
                body = file.read(reference.size + 1)
        except FileNotFoundError as error:
            raise Invalid("the body that an entry names is not there") from error
        except OSError as error:
            raise StorageStopped(f"a large body could not be read: {error.strerror}") from error
        if len(body) != reference.size:
            raise Invalid("the body that an entry names has another size")
        return body

    def remove(self, name: str) -> None:
        if _NAME.fullmatch(name):
            (self._directory / name).unlink(missing_ok=True)

    def sweep(self, now_us: int) -> int:
        """Remove files older than a day; how many. Only right while no entry waits in the stream."""
        before = now_us / MICROSECONDS - limits.INCOMING_ORPHAN_SECONDS
        return sum(_remove_older(path, before) for path in self._files())

    def _files(self) -> list[Path]:
        if not self._directory.is_dir():
            return []
        return [path for path in self._directory.iterdir() if _NAME.fullmatch(path.name.removeprefix(".t-"))]


def _remove_older(path: Path, before: float) -> bool:
    try:
        if path.lstat().st_mtime >= before:
            return False
        path.unlink()
    except FileNotFoundError:  # a gate took back what it had not appended
        return False
    return True


def _write_synced(path: Path, body: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(path, flags, 0o600), "wb") as file:
        file.write(body)
        file.flush()
        os.fsync(file.fileno())

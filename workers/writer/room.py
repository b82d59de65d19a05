"""Room on the disk: the WAL is kept small, and when the disk is full the writer stops and starts again by itself."""

from __future__ import annotations

import logging
import os
from enum import StrEnum
from pathlib import Path

from memory_core import limits
from memory_core.errors import StorageStopped
from memory_core.store.writing import WriterConnection

logger = logging.getLogger(__name__)


class State(StrEnum):
    RUNNING = "running"
    #: The database cannot take anything; nothing is applied and nothing is lost.
    STOPPED = "stopped"
    #: It went on, but the WAL is still large: small batches only.
    RECOVERING = "recovering"


class Ballast:
    """A file that only takes up room, released when the disk is full, so that there is some to tidy up with."""

    def __init__(self, path: Path, *, size_bytes: int = limits.BALLAST_BYTES, reserve_bytes: int) -> None:
        self._path = path
        self._size_bytes = size_bytes
        self._reserve_bytes = reserve_bytes

    def ensure(self) -> None:
        """Make it where the disk has plenty of room, else leave it for later."""
        if self._path.exists():
            return
        disk = os.statvfs(self._path.parent)
        if disk.f_bavail * disk.f_frsize < self._reserve_bytes + 2 * self._size_bytes:
            return
        aside = self._path.with_name(".new-ballast")
        try:
            descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
            try:
                os.posix_fallocate(descriptor, 0, self._size_bytes)
            finally:
                os.close(descriptor)
            aside.replace(self._path)
        except OSError:
            aside.unlink(missing_ok=True)

    def release(self) -> None:
        self._path.unlink(missing_ok=True)


class Room:
    def __init__(self, connection: WriterConnection, ballast: Ballast) -> None:
        self._connection = connection
        self._ballast = ballast
        self.state = State.RUNNING

    @property
    def batch_commands(self) -> int:
        """How many commands the next batch may have."""
        return limits.RECOVERY_BATCH_COMMANDS if self.state is State.RECOVERING else limits.BATCH_COMMANDS_MAX

    def stop(self, error: StorageStopped) -> None:
        """The database refused to go on. Not an attempt of any command: nothing is counted."""
        if self.state is not State.STOPPED:
            logger.error(
                "the writer waits until the database can be written again: %s",
                error,
                extra={"action": "storage_stopped"},
            )
        self.state = State.STOPPED
        self._ballast.release()

    def may_apply(self) -> bool:
        """Whether commands may be applied; when stopped, only after a checkpoint went through."""
        if self.state is not State.STOPPED:
            return True
        try:
            self._connection.checkpoint()
            self._connection.truncate()
        except StorageStopped:
            return False
        logger.info("the database takes writes again", extra={"action": "storage_resumed"})
        self.state = State.RECOVERING
        return True

    def after_batch(self) -> None:
        """Checkpoint when the WAL is large, also under load; a disk that is full for it stops the writer."""
        if self._connection.wal_bytes > limits.WAL_CHECKPOINT_BYTES:
            try:
                self._connection.checkpoint()
            except StorageStopped as error:
                self.stop(error)
                return
        if self.state is State.RECOVERING and self._connection.wal_bytes <= limits.WAL_CHECKPOINT_BYTES:
            self.state = State.RUNNING

    def when_idle(self) -> None:
        """Join the index a little, cut the WAL file if nobody reads it, and put the ballast back."""
        try:
            if self.state is State.RUNNING:
                self._connection.join_index()
            if self._connection.wal_bytes > limits.WAL_IDLE_BYTES:
                self._connection.truncate()
        except StorageStopped as error:
            self.stop(error)
            return
        if self.state is State.RUNNING:
            self._ballast.ensure()

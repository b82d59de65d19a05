"""The one connection that writes and checkpoints: transactions begun and ended by hand, and the WAL kept small."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memory_core import limits
from memory_core.errors import StorageFailed, StorageStopped
from memory_core.store import driver, fulltext
from memory_core.store.database import open_writer, translated

#: Fewer: there was nothing to join (sqlite.org/fts5.html, "The 'merge' command").
_CHANGES_OF_A_MERGE = 2


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """What a checkpoint did, in frames (pages) of the WAL."""

    #: Whether a reader or a lock kept it from finishing.
    was_held: bool
    frames: int
    frames_moved: int

    @property
    def is_complete(self) -> bool:
        return not self.was_held and self.frames == self.frames_moved


class WriterConnection:
    """Owns the driver connection. Used by one thread at a time; every error comes out in our words."""

    def __init__(self, path: Path) -> None:
        self._wal = path.parent.resolve() / f"{path.name}-wal"
        self.raw: Any = open_writer(path)
        #: Whether segments of the full-text index may wait to be joined.
        self._is_split = True

    @property
    def in_transaction(self) -> bool:
        """False as soon as SQLite itself rolled back, as it does when the disk is full."""
        return bool(self.raw.in_transaction)

    @property
    def wal_bytes(self) -> int:
        """The size of the WAL file; after a reset it is cut to the limit that `open_writer` sets."""
        try:
            return self._wal.stat().st_size
        except OSError:
            return 0

    def begin(self) -> None:
        self._execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Index what came, then commit. `StorageStopped` with `must_reopen` when the disk failed: nobody knows then what a
        retry would find."""
        if self._execute(fulltext.UNINDEXED).fetchone() is not None:
            self._execute(fulltext.INDEX_NEW)
            self._execute(fulltext.ALL_INDEXED)
            self._is_split = True
        self._execute("COMMIT")

    def join_index(self) -> None:
        """A bounded step of joining the segments that many commits left in the full-text index."""
        if self._is_split:
            before = self.raw.total_changes
            self._execute(fulltext.MERGE, (limits.INDEX_MERGE_PAGES,))
            self._is_split = self.raw.total_changes - before >= _CHANGES_OF_A_MERGE

    def rollback(self) -> None:
        """End the transaction if SQLite has not done so itself; never raises, it runs while an error is on its way."""
        try:
            if self.in_transaction:
                self.raw.execute("ROLLBACK")
        except driver.Error:
            return

    def checkpoint(self) -> Checkpoint:
        """PASSIVE: moves what readers allow and waits for nobody. `StorageStopped` when the disk is full."""
        return self._checkpoint("PASSIVE")

    def truncate(self) -> Checkpoint:
        """TRUNCATE without waiting for readers: the WAL file shrinks to nothing, or stays as it is."""
        self._execute("PRAGMA busy_timeout=0")
        try:
            return self._checkpoint("TRUNCATE")
        except StorageStopped as error:
            if error.is_busy:
                return Checkpoint(was_held=True, frames=0, frames_moved=0)
            raise
        finally:
            self._execute("PRAGMA busy_timeout=5000")

    def close(self) -> None:
        self.raw.close()

    def _checkpoint(self, mode: str) -> Checkpoint:
        row = self._execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
        if row is None:
            raise StorageFailed("the database said nothing about its checkpoint")
        return Checkpoint(was_held=bool(row[0]), frames=row[1], frames_moved=row[2])

    def _execute(self, sql: str, parameters: tuple[int, ...] = ()) -> Any:
        try:
            return self.raw.execute(sql, parameters)
        except driver.Error as error:
            raise translated(error) from error

"""Opening SQLite: one read-write connection for the writer, read-only ones for everybody else.

The SQLite build of the driver (3.50.4) has the WAL-reset bug of SQLite before 3.51.3, which needs two connections that write or
checkpoint at once; so exactly one connection does either, and every other one is `mode=ro`.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from memory_core import limits
from memory_core.durable import sync_directory
from memory_core.errors import CoreError, Invalid, NotFound, StorageFailed, StorageStopped
from memory_core.store import driver
from memory_core.store.statement import Row, Statement

_IOERR, _NOMEM, _BUSY, _FULL, _INTERRUPT = 10, 7, 5, 13, 9
_READONLY, _CORRUPT, _CANTOPEN, _NOTADB = 8, 11, 14, 26
#: No command is to blame for any of these: the storage as a whole cannot go on.
_STOPS = {_IOERR, _NOMEM, _BUSY, _FULL, _READONLY, _CORRUPT, _CANTOPEN, _NOTADB}

#: Set on every connection before anything else runs on it.
_COMMON = ("PRAGMA temp_store=MEMORY", "PRAGMA trusted_schema=OFF", "PRAGMA foreign_keys=ON")
_WRITER = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
    "PRAGMA wal_autocheckpoint=0",
    # Cuts the file when it is begun anew, so that its size says how much waits for a checkpoint.
    f"PRAGMA journal_size_limit={limits.WAL_CHECKPOINT_BYTES}",
    "PRAGMA busy_timeout=5000",
    "PRAGMA cache_size=-16384",
)
_READER = ("PRAGMA query_only=ON", "PRAGMA busy_timeout=1000", "PRAGMA cache_size=-2048")


def translated(error: Exception) -> CoreError:
    """The driver's error in our words: what stops the storage, what was refused, and what nobody can have asked for in earnest."""
    if isinstance(error, OverflowError):
        return Invalid("a number in the request is larger than 64 bits hold")
    code = getattr(error, "sqlite_errorcode", 0) or 0
    primary = code & 0xFF
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    if primary in _STOPS:
        return StorageStopped(
            f"the database cannot go on now ({name})", must_reopen=primary == _IOERR, is_busy=primary == _BUSY
        )
    if primary == _INTERRUPT:
        return StorageStopped("a read took too long and was ended")
    return StorageFailed(f"the database refused a statement ({name}): {error}")


def create_database(path: Path) -> None:
    """Make an empty database file, 0600, durably; an error if something lies there already."""
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_NOFOLLOW, 0o600))
    # SQLite syncs the name of its log, not that of the file that it did not make itself.
    sync_directory(path.parent)


def open_writer(path: Path) -> Any:
    """The driver connection of the one writer, in autocommit mode (transactions are begun by hand).

    Raises `NotFound` when the file is not there: a database that vanished is never made anew here.
    """
    return _prepared(_connect(path, "rw"), (*_COMMON, *_WRITER))


def open_reader(path: Path) -> Any:
    """A read-only driver connection. The directory must be writable all the same: a WAL database that
    was closed cleanly cannot be opened from a read-only mount."""
    return _prepared(_connect(path, "ro"), (*_COMMON, *_READER))


def _prepared(connection: Any, pragmas: tuple[str, ...]) -> Any:
    try:
        for pragma in pragmas:
            connection.execute(pragma).fetchall()
    except driver.Error as error:
        connection.close()
        raise translated(error) from error
    return connection


def _connect(path: Path, mode: str) -> Any:
    with _disk_answers(path):
        # The data directory itself may be a symlink; the database file may not.
        real = path.parent.resolve() / path.name
        if real.is_symlink():
            raise Invalid(f"{real} is a symbolic link; the database must be a plain file")
        if not real.is_file():
            raise NotFound(f"there is no database at {real}")
    try:
        return driver.connect(f"file:{quote(str(real))}?mode={mode}")
    except driver.Error as error:
        raise translated(error) from error


class Snapshot:
    """One read transaction: `row` and `rows` see one state of the database."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def row(self, statement: Statement, **parameters: Any) -> Row | None:
        return _run(self._connection, statement, parameters).fetchone()

    def rows(self, statement: Statement, **parameters: Any) -> list[Row]:
        try:
            return _run(self._connection, statement, parameters).fetchall()
        except driver.Error as error:
            raise translated(error) from error


class Database:
    """Read access for one process: a read-only connection per thread, opened when first needed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._local = threading.local()

    @contextmanager
    def snapshot(self, seconds: float = limits.READ_TRANSACTION_SECONDS) -> Generator[Snapshot]:
        """A read transaction that is ended after `seconds` (`StorageStopped`), so that no reader holds a checkpoint up."""
        connection = self._connection()
        deadline = time.monotonic() + seconds
        connection.set_progress_handler(lambda: int(time.monotonic() > deadline), 10_000)
        try:
            connection.execute("BEGIN")
            yield Snapshot(connection)
        finally:
            connection.set_progress_handler(None, 0)
            if connection.in_transaction:
                connection.execute("ROLLBACK")

    @property
    def version(self) -> str:
        """Of the SQLite library that is in use."""
        return driver.SQLITE_VERSION

    def close(self) -> None:
        """Close this thread's connection."""
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()
            self._local.connection = None

    def _connection(self) -> Any:
        connection = getattr(self._local, "connection", None)
        if connection is None or self._local.identity != _identity(self._path):
            self.close()
            connection = open_reader(self._path)
            self._local.connection, self._local.identity = connection, _identity(self._path)
        return connection


def _identity(path: Path) -> tuple[int, int] | None:
    with _disk_answers(path):
        try:
            stat = path.stat()
        except FileNotFoundError:
            return None
        return stat.st_dev, stat.st_ino


@contextmanager
def _disk_answers(path: Path) -> Generator[None]:
    """A disk that fails is as much the database's failure when its file is looked at as when it is read."""
    try:
        yield
    except OSError as error:
        raise StorageFailed(f"the disk does not answer for {path}: {error.strerror}") from error


def _run(connection: Any, statement: Statement, parameters: dict[str, Any]) -> Any:
    try:
        return connection.execute(statement.sql, statement.parameters(parameters))
    except (driver.Error, OverflowError) as error:
        raise translated(error) from error

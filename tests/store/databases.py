"""Real databases for tests: at the current schema, made once per process and copied."""

from __future__ import annotations

import shutil
import tempfile
from functools import cache
from pathlib import Path

from memory_core.clock import Clock, FakeClock
from memory_core.config import Settings
from memory_core.ids import IdSource
from memory_core.store.database import create_database
from memory_core.store.install import Permission, establish, marked_install
from memory_core.store.migrate import migrate
from memory_core.store.transaction import Transaction
from memory_core.store.writing import WriterConnection
from workers.data_dir import prepare


def new_database(directory: Path) -> Path:
    """An empty database with the whole schema at `directory/memory.sqlite`."""
    path = directory / "memory.sqlite"
    shutil.copy(_template(), path)
    path.chmod(0o600)
    return path


def ready(settings: Settings) -> None:
    """Make a new data directory as a first start leaves it that ended right after the database got its tables.

    The child that migrates costs as much as another process of the server. One that was used before is left alone.
    """
    if not settings.data_dir.exists():
        prepare(settings)
    if not settings.database.exists() and marked_install(settings.marker_file) is None:
        new_database(settings.database.parent)


def new_writer(directory: Path, clock: Clock | None = None) -> WriterConnection:
    """The write connection of a new database that has its install row, with epoch 1."""
    path = new_database(directory)
    connection = WriterConnection(path)
    connection.raw.execute("PRAGMA synchronous=OFF")  # a test's database need not survive a power cut
    with_transaction(connection, lambda tx: establish(tx, path, "machine", Permission()), clock)
    return connection


def with_transaction(connection: WriterConnection, work, clock: Clock | None = None):
    """Run `work(tx)` in one committed transaction; what it returns."""
    clock = clock or FakeClock()
    tx = Transaction(connection.raw, IdSource(clock))
    tx.now = clock.now_us()
    connection.begin()
    try:
        value = work(tx)
        tx.write_held()
        connection.commit()
    except BaseException:
        connection.rollback()
        raise
    return value


@cache
def _template() -> Path:
    directory = Path(tempfile.mkdtemp(prefix="memoryd-template-"))
    path = directory / "template.sqlite"
    create_database(path)
    migrate(path, directory, FakeClock())
    return path

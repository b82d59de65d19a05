"""Connections to the database: where their temporaries lie, and what they refuse to open or to make."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from memory_core.clock import FakeClock
from memory_core.errors import CoreError, Invalid, NotFound
from memory_core.store import migrate, schema
from memory_core.store.database import Database, create_database, open_reader, open_writer
from memory_core.store.statement import text_statement
from tests.store.databases import new_database

OPENERS = (open_reader, open_writer)


@pytest.mark.parametrize("opened", OPENERS)
def test_every_memory_connection_keeps_sqlite_temporaries_in_memory(tmp_path: Path, opened):
    connection = opened(new_database(tmp_path))

    assert connection.execute("PRAGMA temp_store").fetchone()[0] == 2
    assert connection.execute("PRAGMA trusted_schema").fetchone()[0] == 0
    assert connection.execute("PRAGMA foreign_keys").fetchone()[0] == 1
    connection.close()


@pytest.mark.parametrize("opened", OPENERS)
def test_removing_opened_database_never_recreates_it(tmp_path: Path, opened):
    path = new_database(tmp_path)
    opened(path).close()
    database = Database(path)
    with database.snapshot() as reading:
        reading.row(text_statement("SELECT 1 AS one"))
    for file in tmp_path.iterdir():
        file.unlink()

    with pytest.raises(NotFound):
        opened(path)
    with pytest.raises(CoreError), database.snapshot() as reading:
        reading.row(text_statement("SELECT count(*) AS n FROM sessions"))
    assert not path.exists()


@pytest.mark.parametrize("opened", OPENERS)
def test_sqlite_open_rejects_database_symlink(tmp_path: Path, opened):
    real = new_database(tmp_path)
    link = tmp_path / "link.sqlite"
    link.symlink_to(real)

    with pytest.raises(Invalid, match="symbolic link"):
        opened(link)


def test_concurrent_first_open_serializes_migration(tmp_path: Path):
    """Only the writer migrates, and there is one; should there ever be two, one waits for the other."""
    path = tmp_path / "memory.sqlite"
    create_database(path)
    start, errors = threading.Barrier(2), list[BaseException]()

    def first_open() -> None:
        start.wait()
        try:
            migrate.migrate_apart(path, tmp_path)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=first_open) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    # Whoever came second either found it done, or says that the database is busy; nothing is half done.
    assert len(errors) <= 1
    migrate.migrate(path, tmp_path, FakeClock())
    with Database(path).snapshot() as snapshot:
        schema.check_schema(snapshot)
    connection = open_writer(path)
    assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    connection.close()

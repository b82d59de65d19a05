"""Every revision brings a database that is in use to the next: nothing that it held is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from alembic import command

from memory_core.clock import FakeClock
from memory_core.store import fulltext, migrate, schema
from memory_core.store.database import create_database, open_writer
from memory_core.store.every_table import metadata
from tests.store.one_of_each import ROWS

#: Before 0003 links had another shape, and nothing wrote any.
_NOT_YET = {"0001": {"links"}, "0002": {"links"}}
#: Has no row outside a transaction.
_EMPTY_AT_REST = {"unindexed_observations"}


def at_revision(directory: Path, revision: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty database of that revision, made by the migrations themselves."""
    path = directory / "memory.sqlite"
    create_database(path)
    upgrade = command.upgrade
    with monkeypatch.context() as patched:
        patched.setattr(command, "upgrade", lambda config, _head: upgrade(config, revision))
        migrate.migrate(path, directory, FakeClock())
    return path


def columns_of(connection: Any, table: str) -> list[str]:
    return [row["name"] for row in connection.execute(f"PRAGMA table_info({table})")]


def populate(connection: Any, revision: str) -> dict[str, dict[str, Any]]:
    """One row in each table that there is; what was put in."""
    put: dict[str, dict[str, Any]] = {}
    for table, row in ROWS.items():
        known = columns_of(connection, table)
        if not known or table in _NOT_YET.get(revision, set()):
            continue
        values = {name: value for name, value in row.items() if name in known}
        marks = ", ".join("?" for _ in values)
        connection.execute(
            f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})", list(values.values())
        )
        put[table] = values
    if columns_of(connection, "unindexed_observations"):  # as every commit of the writer does
        connection.execute(fulltext.INDEX_NEW)
        connection.execute(fulltext.ALL_INDEXED)
    return put


def test_there_is_a_row_of_each_table():
    assert set(ROWS) == set(metadata.tables) - _EMPTY_AT_REST


@pytest.mark.parametrize("revision", schema.REVISIONS)
def test_a_populated_database_of_each_revision_reaches_the_head_with_all_its_rows(
    tmp_path: Path, revision: str, monkeypatch: pytest.MonkeyPatch
):
    path = at_revision(tmp_path, revision, monkeypatch)
    connection = open_writer(path)
    assert connection.execute("SELECT version_num FROM alembic_version").fetchone()[0] == revision
    put = populate(connection, revision)
    connection.close()

    migrate.migrate(path, tmp_path, FakeClock())

    assert migrate.is_current(path)
    connection = open_writer(path)
    for table, values in put.items():
        where = " AND ".join(f"{name} IS ?" for name in values)
        count = connection.execute(f"SELECT count(*) FROM {table} WHERE {where}", list(values.values()))
        assert count.fetchone()[0] == 1, table
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    connection.close()


@pytest.mark.parametrize("revision", schema.REVISIONS)
def test_what_a_database_of_each_revision_held_is_found_afterwards(
    tmp_path: Path, revision: str, monkeypatch: pytest.MonkeyPatch
):
    path = at_revision(tmp_path, revision, monkeypatch)
    connection = open_writer(path)
    populate(connection, revision)
    if columns_of(connection, "page_chunks"):  # who writes a page writes its parts
        connection.execute("INSERT INTO chunks_fts(rowid, body, scope) VALUES (1, 'gateway', 'p1')")
    connection.close()

    migrate.migrate(path, tmp_path, FakeClock())

    connection = open_writer(path)
    for table, words in (("observations_fts", "scope : p1 AND uploader"), ("chunks_fts", "gateway")):
        found = connection.execute(f"SELECT rowid FROM {table} WHERE {table} MATCH ?", (words,)).fetchall()
        assert [row["rowid"] for row in found] == [1], table
        connection.execute(f"INSERT INTO {table}({table}) VALUES ('integrity-check')")
    connection.close()

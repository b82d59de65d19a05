"""Looking whether the database is whole, from outside: on a read-only connection, a table at a time.

Each question is a read transaction of its own, so that no checkpoint waits for longer than one table takes.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import bindparam, select

from memory_core.store import driver
from memory_core.store.database import open_reader
from memory_core.store.statement import Statement
from memory_core.store.tables import page_versions, pages
from memory_core.store.tables_rendered import rendered_files
from memory_core.store.transaction import Reading

_TABLES = "SELECT name, sql LIKE 'CREATE VIRTUAL TABLE%' AS is_virtual FROM sqlite_master WHERE type = 'table' ORDER BY name"
#: What one question says at most.
_SAID_MAX = 3
_PAGE_FILES = Statement(
    select(pages.c.path.label("name"), page_versions.c.sha256)
    .join_from(pages, page_versions, page_versions.c.id == pages.c.version_id)
    .where(pages.c.project_id == bindparam("project_id"), pages.c.tombstoned_at.is_(None))
)
_RENDERED_FILES = Statement(
    select(rendered_files.c.name, rendered_files.c.sha256).where(
        rendered_files.c.project_id == bindparam("project_id"), rendered_files.c.sha256.is_not(None)
    )
)


@dataclass(frozen=True, kw_only=True)
class TableLook:
    """One table was looked at. `kind`: `table`, `full_text` or `references`; `is_whole`: nothing is wrong with it."""

    table: str
    kind: str
    is_whole: bool


def look(path: Path) -> Generator[TableLook]:
    """Every table of the database at `path`: its pages and indexes (a full-text table: its index against its text), and
    then the references of all. Raises `NotFound` where there is no database, `StorageStopped` where it cannot be opened."""
    with closing(open_reader(path)) as connection:
        for row in connection.execute(_TABLES).fetchall():
            name = str(row["name"])
            if row["is_virtual"]:
                yield TableLook(
                    table=name, kind="full_text", is_whole=_is_ok(connection, "integrity_check", name)
                )
            else:
                yield TableLook(table=name, kind="table", is_whole=_is_ok(connection, "quick_check", name))
        yield TableLook(
            table="all", kind="references", is_whole=_has_no_rows(connection, "foreign_key_check")
        )


def expected_files(read: Reading, project_id: bytes) -> dict[str, bytes]:
    """The SHA-256 that each file of a project is to have, by its name inside the project's directory."""
    rows = [
        *read.rows(_PAGE_FILES, project_id=project_id),
        *read.rows(_RENDERED_FILES, project_id=project_id),
    ]
    return {row["name"]: row["sha256"] for row in rows}


def _is_ok(connection: Any, check: str, table: str) -> bool:
    try:
        name = table.replace('"', '""')
        rows = connection.execute(f'PRAGMA {check}("{name}")').fetchmany(_SAID_MAX)
    except driver.Error:
        return False
    return [row[0] for row in rows] == ["ok"]


def _has_no_rows(connection: Any, check: str) -> bool:
    try:
        return connection.execute(f"PRAGMA {check}").fetchone() is None
    except driver.Error:
        return False

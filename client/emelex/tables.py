"""Rows of a private copy of the older program's database. The only SQL outside the store: this file is another program's, and is
only read."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

from client.emelex import schema
from memory_core.errors import Corrupt, Invalid, SchemaTooNew

Row = Mapping[str, Any]
#: Tables are STRICT.
_SQLITE_MIN: Final = (3, 37, 0)
_ROWS: Final = 200
#: No row of any schema is longer.
_VALUE_MAX_BYTES: Final = 40 * 2**20
_SAID_MAX: Final = 5


class Tables:
    """One copy, recognised and whole. Columns that its schema does not have yet are None."""

    def __init__(self, connection: sqlite3.Connection, version: int) -> None:
        self._connection = connection
        self.version = version

    def rows(self, table: str, order: str, **equal: str) -> Iterator[Row]:
        """The rows of a table in an order, those whose columns equal what is given. Raises `Corrupt`."""
        has = schema.columns(table, self.version)
        if not has:
            return
        wanted = [_selected(table, name, self.version) for name in schema.all_columns(table)]
        where = " AND ".join(f'"{name}" = ?' for name in equal)
        # Every name in it is one of ours, whatever the file says.
        text = f'SELECT {", ".join(wanted)} FROM "{table}"' + (f" WHERE {where}" if where else "")  # noqa: S608
        with _translated(table), closing(self._connection.cursor()) as cursor:
            cursor.execute(f"{text} ORDER BY {order}", tuple(equal.values()))
            while found := cursor.fetchmany(_ROWS):
                yield from found


def _selected(table: str, name: str, version: int) -> str:
    renamed = schema.authority_of(table, version)
    if renamed and renamed[0] == name:
        return f'"{renamed[1]}" AS "{name}"'
    return f'"{name}"' if name in schema.columns(table, version) else f'NULL AS "{name}"'


@contextmanager
def opened(copy: Path) -> Iterator[Tables]:
    """Open a copy, which takes in what its sidecars hold, and look whether it is whole.

    Raises `SchemaTooNew`, `Invalid` for a database of something else, `Corrupt` for a damaged one; each names what is wrong.
    """
    if sqlite3.sqlite_version_info < _SQLITE_MIN:
        raise Invalid(f"this Python has SQLite {sqlite3.sqlite_version}; the import needs 3.37 or newer")
    with _translated("the database"), closing(sqlite3.connect(copy, isolation_level=None)) as connection:
        connection.row_factory = _as_dict
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _VALUE_MAX_BYTES)
        # Not `trusted_schema = OFF`: to some versions of SQLite the `json_valid` of its own checks is unsafe then.
        for setting in ("cell_size_check = ON", "temp_store = MEMORY"):
            _pragma(connection, setting)
        # What the write-ahead log holds becomes part of the copy.
        _pragma(connection, "journal_mode = DELETE")
        _pragma(connection, "query_only = ON")
        version = _version(connection)
        _check_tables(connection, version)
        _check_whole(connection)
        yield Tables(connection, version)


def _version(connection: sqlite3.Connection) -> int:
    version = int(_pragma(connection, "user_version")[0]["user_version"])
    if version > schema.NEWEST:
        raise SchemaTooNew(
            f"its schema is version {version}, which is newer than memoryd knows ({schema.OLDEST} to {schema.NEWEST})"
        )
    if version < schema.OLDEST:
        raise Invalid(
            f"it is no database of emelex: its schema is version {version}, not {schema.OLDEST} to {schema.NEWEST}"
        )
    return version


def _check_tables(connection: sqlite3.Connection, version: int) -> None:
    for table in schema.tables(version):
        # A view would run what somebody else wrote.
        kinds = [row["type"] for row in _pragma(connection, f'table_list("{table}")')]
        has = {row["name"] for row in _pragma(connection, f'table_info("{table}")')}
        missing = [name for name in schema.columns(table, version) if name not in has]
        if kinds != ["table"]:
            raise Corrupt(f"its schema says version {version}, but there is no table {table}")
        if missing:
            raise Corrupt(f"its schema says version {version}, but {table} has no column {missing[0]}")


def _check_whole(connection: sqlite3.Connection) -> None:
    said = [str(row["integrity_check"]) for row in _pragma(connection, f"integrity_check({_SAID_MAX})")]
    if said != ["ok"]:
        raise Corrupt(f"it is damaged: {'; '.join(said)[:500]}")
    broken = _pragma(connection, "foreign_key_check")
    if broken:
        first = broken[0]
        raise Corrupt(
            f"it is damaged: {len(broken)} references lead nowhere, the first from {first['table']} to {first['parent']}"
        )


def _pragma(connection: sqlite3.Connection, text: str) -> list[Row]:
    return connection.execute(f"PRAGMA {text}").fetchall()


def _as_dict(cursor: sqlite3.Cursor, row: tuple[Any, ...]) -> Row:
    return {column[0]: value for column, value in zip(cursor.description, row, strict=True)}


@contextmanager
def _translated(where: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise Corrupt(f"{where} cannot be read: {error}") from error

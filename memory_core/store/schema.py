"""Which revision of the schema this code is written for; asking costs no migration library."""

from __future__ import annotations

from typing import Any

from memory_core.errors import SchemaTooNew, Unavailable
from memory_core.store.statement import Statement, text_statement
from memory_core.store.transaction import Reading

#: All revisions in their order; the last one is what this code reads and writes.
REVISIONS = (
    *(f"{number:04}" for number in range(1, 16)),
    "0020",
    "0021",
    "0022",
    "0023",
    "0024",
    "0025",
    "0026",
    "0027",
)
HEAD = REVISIONS[-1]

_HAS_VERSION_TABLE: Statement = text_statement(
    "SELECT 1 AS found FROM sqlite_master WHERE type = 'table' AND name = 'alembic_version'"
)
_VERSION: Statement = text_statement("SELECT version_num FROM alembic_version")


def revision_of(reading: Reading) -> str | None:
    """The revision of a database, None for an empty one."""
    if reading.row(_HAS_VERSION_TABLE) is None:
        return None
    row: Any = reading.row(_VERSION)
    return None if row is None else str(row["version_num"])


def refuse_newer(revision: str | None) -> None:
    """`SchemaTooNew`, naming both revisions, when a later memoryd made the database."""
    if revision is not None and revision not in REVISIONS:
        raise SchemaTooNew(
            f"the database has schema revision {revision}, this memoryd knows revisions up to {HEAD}: "
            "a newer memoryd wrote it. Start that version, or restore a backup of this one from db/backups"
        )


def check_schema(reading: Reading) -> None:
    """What a reader asks before it trusts its statements: `SchemaTooNew`, or `Unavailable` while the writer upgrades."""
    revision = revision_of(reading)
    refuse_newer(revision)
    if revision != HEAD:
        raise Unavailable(f"the database is at schema revision {revision or 'none'}, waiting for {HEAD}")

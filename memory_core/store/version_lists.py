"""The versions that a path of a project ever had: of the page that is there, and of those that were."""

from __future__ import annotations

from sqlalchemy import bindparam, func, select

from memory_core.store.statement import Row, Statement
from memory_core.store.tables import page_versions, pages
from memory_core.store.transaction import Reading

#: All versions come before this one.
FIRST = (1 << 63) - 1

_FACTS = ("seq", "id", "supersedes", "title", "kind", "tier", "cause", "actor", "created_at", "superseded_at")
_OF_PATH = (
    select(
        *(page_versions.c[name] for name in _FACTS),
        func.length(page_versions.c.content).label("chars"),
        pages.c.path,
        pages.c.version_id.label("newest_id"),
        pages.c.tombstoned_at,
    )
    .join(pages, pages.c.id == page_versions.c.page_id)
    .where(pages.c.project_id == bindparam("project_id"), pages.c.path_key == bindparam("path_key"))
)
_LISTED = Statement(
    _OF_PATH.where(page_versions.c.seq < bindparam("before"))
    .order_by(page_versions.c.seq.desc())
    .limit(bindparam("limit"))
)
_ONE = Statement(
    _OF_PATH.add_columns(page_versions.c.content, page_versions.c.body_start, page_versions.c.tags).where(
        page_versions.c.id == bindparam("version_id")
    )
)


def listed(reading: Reading, project_id: bytes, path_key: str, *, before: int, limit: int) -> list[Row]:
    """Versions of a path, newest first, those of deleted pages too; `chars` is the length of the whole file."""
    return reading.rows(_LISTED, project_id=project_id, path_key=path_key, before=before, limit=limit)


def one(reading: Reading, project_id: bytes, path_key: str, version_id: bytes) -> Row | None:
    """One version with its text; None where that path never had it."""
    return reading.row(_ONE, project_id=project_id, path_key=path_key, version_id=version_id)

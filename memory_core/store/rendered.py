"""The rendered files of projects: which are due, what they were, and the rows that they are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import bindparam, func, literal, not_, or_, select, update

from memory_core import limits
from memory_core.clock import MICROSECONDS
from memory_core.domain.page import SESSIONS_FOLDER
from memory_core.domain.rendered import INDEX, Happened, Listed, log_name
from memory_core.store.statement import Row, Statement, text_statement
from memory_core.store.tables import page_versions, pages
from memory_core.store.tables_rendered import rendered_files
from memory_core.store.transaction import Reading, Transaction


@dataclass(frozen=True, kw_only=True)
class RenderedFile:
    """One rendered file of a project; `sha256` of what it was last, None before the first time."""

    id: bytes
    project_id: bytes
    name: str
    sha256: bytes | None


#: Of a project that is still there.
_TOUCH = text_statement(
    "INSERT INTO rendered_files(id, project_id, name, due_at)"
    " SELECT :id, id, :name, :soon FROM projects WHERE id = :project_id"
    " ON CONFLICT (project_id, name) DO UPDATE SET due_at = coalesce(due_at,"
    f" max(excluded.due_at, coalesce(rendered_at, 0) + {limits.RENDER_PAUSE_SECONDS * MICROSECONDS}))"
)
_FILE = select(
    rendered_files.c.id, rendered_files.c.project_id, rendered_files.c.name, rendered_files.c.sha256
)
_DUE = Statement(
    _FILE.where(rendered_files.c.due_at <= bindparam("now"))
    .order_by(rendered_files.c.due_at)
    .limit(bindparam("limit"))
)
_AT_REST = Statement(
    _FILE.where(
        rendered_files.c.project_id == bindparam("project_id"),
        rendered_files.c.due_at.is_(None),
        rendered_files.c.sha256.is_not(None),
    )
)
_BY_ID = Statement(_FILE.where(rendered_files.c.id == bindparam("id")))
_CONTENT = Statement(select(rendered_files.c.content).where(rendered_files.c.id == bindparam("id")))
_RENDERED = Statement(
    update(rendered_files)
    .where(rendered_files.c.id == bindparam("file_id"))
    .values(content=bindparam("text"), sha256=bindparam("hash"), due_at=None, rendered_at=bindparam("now"))
)
_IS_SESSION = pages.c.path_key.like(f"{SESSIONS_FOLDER}/%")


def _listed(*, sessions: bool) -> Statement:
    listed = (
        select(pages.c.path, page_versions.c.title, page_versions.c.kind, pages.c.pinned)
        .join(page_versions, page_versions.c.id == pages.c.version_id)
        .where(
            pages.c.project_id == bindparam("project_id"),
            pages.c.tombstoned_at.is_(None),
            or_(pages.c.expires_at.is_(None), pages.c.expires_at > bindparam("now")),
            _IS_SESSION if sessions else not_(_IS_SESSION),
        )
        .order_by(pages.c.updated_at.desc())
        .limit(bindparam("limit"))
    )
    return Statement(listed)


_PAGES, _SESSIONS = _listed(sessions=False), _listed(sessions=True)
_COUNTS = Statement(
    select(
        func.count().label("all_pages"), func.count(func.iif(_IS_SESSION, 1, None)).label("sessions")
    ).where(pages.c.project_id == bindparam("project_id"), pages.c.tombstoned_at.is_(None))
)
_WRITTEN = Statement(
    select(
        page_versions.c.created_at.label("at"),
        func.iif(page_versions.c.supersedes.is_(None), literal("created"), literal("changed")).label("what"),
        pages.c.path,
        page_versions.c.title,
        page_versions.c.actor,
    )
    .join(pages, pages.c.id == page_versions.c.page_id)
    .where(
        page_versions.c.project_id == bindparam("project_id"),
        page_versions.c.created_at >= bindparam("since"),
        page_versions.c.created_at < bindparam("until"),
    )
    .order_by(page_versions.c.created_at.desc(), page_versions.c.seq.desc())
    .limit(bindparam("limit"))
)
_DELETED = Statement(
    select(pages.c.tombstoned_at.label("at"), pages.c.path, page_versions.c.title)
    .join(page_versions, page_versions.c.id == pages.c.version_id)
    .where(
        pages.c.project_id == bindparam("project_id"),
        pages.c.tombstoned_at >= bindparam("since"),
        pages.c.tombstoned_at < bindparam("until"),
    )
    .order_by(pages.c.tombstoned_at.desc())
    .limit(bindparam("limit"))
)


def touch(tx: Transaction, project_id: bytes) -> None:
    """Something happened to a page of the project: its index and its log are due soon, though not too often."""
    for name in (INDEX, log_name(tx.now)):
        _soon(tx, project_id, name)


def _soon(tx: Transaction, project_id: bytes, name: str) -> None:
    soon = tx.now + limits.RENDER_DELAY_SECONDS * MICROSECONDS
    tx.write_last(_put_on_list, {"project_id": project_id, "name": name, "soon": soon})


def _put_on_list(tx: Transaction, files: list[dict[str, Any]]) -> None:
    """Each file once, as soon as the first of those who touched it wanted it."""
    for file in {(file["project_id"], file["name"]): file for file in reversed(files)}.values():
        tx.run(_TOUCH, id=tx.new_id(), **file)


def restore(tx: Transaction, project_id: bytes, name: str) -> None:
    """A rendered file is not as it was left: it is due soon, though not too often."""
    _soon(tx, project_id, name)


def at_rest(reading: Reading, project_id: bytes) -> dict[str, bytes]:
    """Name → SHA-256 of the rendered files of a project that are as they should be until something happens."""
    return {row["name"]: row["sha256"] for row in reading.rows(_AT_REST, project_id=project_id)}


def due(reading: Reading, now: int, limit: int) -> list[RenderedFile]:
    return [RenderedFile(**dict(row)) for row in reading.rows(_DUE, now=now, limit=limit)]


def file_by_id(reading: Reading, file_id: bytes) -> RenderedFile | None:
    row = reading.row(_BY_ID, id=file_id)
    return None if row is None else RenderedFile(**dict(row))


def content_of(reading: Reading, file_id: bytes) -> str | None:
    """The text of a rendered file as it was last rendered."""
    row: Any = reading.row(_CONTENT, id=file_id)
    return None if row is None else row["content"]


def rendered(tx: Transaction, file_id: bytes, text: str, sha256: bytes) -> None:
    """Note what a file is now; it is not due any more."""
    tx.run(_RENDERED, file_id=file_id, text=text, hash=sha256, now=tx.now)


def listed(reading: Reading, project_id: bytes, now: int) -> tuple[list[Listed], list[Listed]]:
    """The pages of a project that its index shows: those of sessions apart, the last changed first."""
    found = [
        [_page(row) for row in reading.rows(question, project_id=project_id, now=now, limit=limit)]
        for question, limit in ((_PAGES, limits.INDEX_PAGES_MAX), (_SESSIONS, limits.INDEX_SESSIONS_MAX))
    ]
    return found[0], found[1]


def counts(reading: Reading, project_id: bytes) -> tuple[int, int]:
    """How many pages a project has: those of sessions left out, and those of sessions."""
    row: Any = reading.row(_COUNTS, project_id=project_id)
    return row["all_pages"] - row["sessions"], row["sessions"]


def happened(reading: Reading, project_id: bytes, since: int, until: int, limit: int) -> list[Happened]:
    """What happened to pages of a project in a time, the newest first."""
    span = {"project_id": project_id, "since": since, "until": until, "limit": limit}
    written = [Happened(**dict(row)) for row in reading.rows(_WRITTEN, **span)]
    deleted = [Happened(what="deleted", actor="", **dict(row)) for row in reading.rows(_DELETED, **span)]
    return sorted([*written, *deleted], key=lambda one: one.at, reverse=True)[:limit]


def _page(row: Row) -> Listed:
    return Listed(path=row["path"], title=row["title"], kind=row["kind"], pinned=bool(row["pinned"]))

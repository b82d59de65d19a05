"""Questions about what there is in a project: which sorts of pages, who worked on it before, what much points to."""

from __future__ import annotations

from sqlalchemy import and_, bindparam, exists, func, or_, select

from memory_core.store.shown import is_shown
from memory_core.store.statement import Row, Statement
from memory_core.store.tables import links, page_versions, pages, sessions
from memory_core.store.tables_durable import durable_sessions
from memory_core.store.transaction import Reading

_IS_SHOWN = and_(pages.c.project_id == bindparam("project_id"), is_shown())
_COUNT = func.count().label("count")
_KINDS = Statement(
    select(page_versions.c.kind, _COUNT)
    .join_from(pages, page_versions, page_versions.c.id == pages.c.version_id)
    .where(_IS_SHOWN)
    .group_by(page_versions.c.kind)
    .order_by(_COUNT.desc(), page_versions.c.kind)
)
_OF_PROJECT = and_(
    sessions.c.project_id == bindparam("project_id"),
    or_(sessions.c.owner.is_(None), sessions.c.owner == bindparam("owner")),
    ~exists().where(
        durable_sessions.c.session_id == sessions.c.id, durable_sessions.c.deleted_at.is_not(None)
    ),
)
_OPEN = Statement(
    select(sessions.c.id).where(_OF_PROJECT, sessions.c.ended_at.is_(None)).limit(bindparam("limit"))
)
_BEFORE = Statement(
    select(
        sessions.c.id,
        sessions.c.agent,
        sessions.c.title,
        sessions.c.last_event_at,
        sessions.c.ended_at,
        pages.c.path,
    )
    .outerjoin(pages, and_(pages.c.id == sessions.c.page_id, is_shown()))
    .where(_OF_PROJECT, sessions.c.substance_count > 0, sessions.c.id != bindparam("but"))
    .order_by(sessions.c.last_event_at.desc(), sessions.c.id)
    .limit(bindparam("limit"))
)
#: Another page that points.
_source = pages.alias("source")
_POINTED_TO = Statement(
    select(pages.c.path, page_versions.c.title, _COUNT)
    .select_from(pages)
    .join(page_versions, page_versions.c.id == pages.c.version_id)
    .join(links, and_(links.c.to_path_key == pages.c.path_key, links.c.project_id == pages.c.project_id))
    .join(_source, and_(_source.c.id == links.c.from_page_id, is_shown(_source)))
    .where(_IS_SHOWN, links.c.to_project == "")
    .group_by(pages.c.id)
    .order_by(_COUNT.desc(), pages.c.path_key)
    .limit(bindparam("limit"))
)


def kinds(read: Reading, project_id: bytes, *, now: int) -> list[Row]:
    """How many pages there are of each kind: kind, count; the most first."""
    return read.rows(_KINDS, project_id=project_id, now=now)


def only_open(read: Reading, project_id: bytes, *, owner: str) -> bytes | None:
    """The session in this project that is open and nobody else's, if there is just one."""
    rows = read.rows(_OPEN, project_id=project_id, owner=owner, limit=2)
    return rows[0]["id"] if len(rows) == 1 else None


def sessions_before(
    read: Reading, project_id: bytes, *, owner: str, but: bytes | None, now: int, limit: int
) -> list[Row]:
    """The last sessions with more than boundaries that are shared or `owner`'s, without the one `but`: id, agent, title,
    last_event_at, ended_at, path (of its page, where it has one)."""
    return read.rows(_BEFORE, project_id=project_id, owner=owner, but=but or b"", now=now, limit=limit)


def pointed_to(read: Reading, project_id: bytes, *, now: int, limit: int) -> list[Row]:
    """The pages that most other pages of the project point to: path, title, count."""
    return read.rows(_POINTED_TO, project_id=project_id, now=now, limit=limit)

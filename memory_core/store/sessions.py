"""Sessions: their rows, counters and what is due of them."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    ColumnElement,
    LargeBinary,
    Select,
    and_,
    bindparam,
    exists,
    func,
    or_,
    select,
    true,
    tuple_,
)
from sqlalchemy.dialects.sqlite import insert

from memory_core.store.statement import Row, Statement
from memory_core.store.tables import handoffs, page_versions, pages, projects, sessions, workspaces
from memory_core.store.tables_durable import durable_sessions
from memory_core.store.transaction import Reading, Transaction

#: How many events it has: those of a durable session that its program writes, else what hooks told.
_EVENTS = func.coalesce(durable_sessions.c.last_sequence, sessions.c.observation_count).label("event_count")
_IS_EXACT = and_(durable_sessions.c.session_id == sessions.c.id, durable_sessions.c.origin == "client")
_HAS_OFFER = exists(select(handoffs.c.id).where(handoffs.c.offered_to == bindparam("id"))).label("has_offer")
_ONE = Statement(
    select(
        sessions, projects.c.name.label("project"), workspaces.c.name.label("workspace"), _HAS_OFFER, _EVENTS
    )
    .join_from(sessions, projects, projects.c.id == sessions.c.project_id)
    .join(workspaces, workspaces.c.id == projects.c.workspace_id)
    .outerjoin(durable_sessions, _IS_EXACT)
    .where(sessions.c.id == bindparam("id"))
)
#: Asked for each event, so it must not write what others' events changed: it reads rows that nothing of that changes.
_CURRENT = Statement(
    select(sessions, projects.c.name.label("project"), workspaces.c.name.label("workspace"), _HAS_OFFER)
    .join_from(sessions, projects, projects.c.id == sessions.c.project_id)
    .join(workspaces, workspaces.c.id == projects.c.workspace_id)
    .where(sessions.c.id == bindparam("id")),
    is_apart=True,
)
_ADD = Statement(insert(sessions).values({column.name: bindparam(column.name) for column in sessions.c}))
_NEW_PAGE_ID: ColumnElement[bytes] = bindparam("new_page_id", type_=LargeBinary())
#: What an event changes of its session.
_COUNTED = (
    sessions.c.observation_count,
    sessions.c.substance_count,
    sessions.c.last_event_at,
    sessions.c.title,
    sessions.c.cwd,
    sessions.c.model,
    sessions.c.ended_at,
    sessions.c.end_reason,
    sessions.c.refinalise_at,
)
_COUNT_EVENTS = Statement(
    sessions.update()
    .where(sessions.c.id == bindparam("id"))
    .values({column.name: bindparam(column.name) for column in _COUNTED}),
    is_apart=True,
)
_FINALISED = Statement(
    sessions.update()
    .where(sessions.c.id == bindparam("session_id"))
    .values(
        finalised_count=bindparam("new_count"),
        refinalise_at=None,
        page_id=func.coalesce(_NEW_PAGE_ID, sessions.c.page_id),
    )
)
_END = Statement(
    sessions.update()
    .where(sessions.c.id == bindparam("session_id"))
    .values(ended_at=bindparam("new_ended_at"), end_reason=bindparam("new_end_reason"))
)
_DELETE = Statement(sessions.delete().where(sessions.c.id == bindparam("session_id")))
_DUE = Statement(
    select(sessions.c.id)
    .where(sessions.c.refinalise_at.is_not(None), sessions.c.refinalise_at <= bindparam("now"))
    .order_by(sessions.c.refinalise_at)
    .limit(bindparam("limit"))
)
_IDLE = Statement(
    select(sessions.c.id)
    .where(sessions.c.ended_at.is_(None), sessions.c.last_event_at <= bindparam("before"))
    .order_by(sessions.c.last_event_at)
    .limit(bindparam("limit"))
)
_PAGE = Statement(
    select(
        pages.c.project_id,
        pages.c.path,
        pages.c.tombstoned_at,
        page_versions.c.cause,
    )
    .join_from(pages, page_versions, page_versions.c.id == pages.c.version_id)
    .where(pages.c.id == bindparam("page_id"))
)
_OPEN_PROJECTS = Statement(
    select(
        projects.c.id.label("project_id"),
        projects.c.name.label("project"),
        workspaces.c.name.label("workspace"),
        func.max(sessions.c.last_event_at).label("last_event_at"),
    )
    .join_from(sessions, projects, projects.c.id == sessions.c.project_id)
    .join(workspaces, workspaces.c.id == projects.c.workspace_id)
    .where(
        sessions.c.ended_at.is_(None),
        or_(sessions.c.owner.is_(None), sessions.c.owner == bindparam("owner")),
    )
    .group_by(projects.c.id)
    .order_by(func.max(sessions.c.last_event_at).desc())
    .limit(bindparam("limit"))
)
_COUNTS = Statement(
    select(
        func.count().label("total"),
        func.count().filter(sessions.c.ended_at.is_(None)).label("open"),
        func.max(sessions.c.last_event_at).label("last_event_at"),
    ).where(or_(bindparam("project_id").is_(None), sessions.c.project_id == bindparam("project_id")))
)


def _listing(*conditions: ColumnElement[bool]) -> Select[Any]:
    return (
        select(
            sessions,
            projects.c.name.label("project"),
            workspaces.c.name.label("workspace"),
            pages.c.path.label("page_path"),
            _EVENTS,
        )
        .join_from(sessions, projects, projects.c.id == sessions.c.project_id)
        .join(workspaces, workspaces.c.id == projects.c.workspace_id)
        .outerjoin(pages, pages.c.id == sessions.c.page_id)
        .outerjoin(durable_sessions, _IS_EXACT)
        .where(
            and_(
                true(),
                *conditions,
                or_(
                    bindparam("all_owners"),
                    sessions.c.owner.is_(None),
                    sessions.c.owner == bindparam("owner"),
                ),
                or_(
                    bindparam("is_open").is_(None),
                    sessions.c.ended_at.is_(None) == bindparam("is_open"),
                ),
                tuple_(sessions.c.last_event_at, sessions.c.id)
                < tuple_(bindparam("before"), bindparam("before_id")),
            )
        )
        .order_by(sessions.c.last_event_at.desc(), sessions.c.id.desc())
        .limit(bindparam("limit"))
    )


_LIST = Statement(_listing())
_LIST_OF_PROJECT = Statement(_listing(sessions.c.project_id == bindparam("project_id")))
_END_OF_TIME = (2**62, b"")


def one(read: Reading, session_id: bytes) -> Row | None:
    """The session's row with `project`, `workspace`, `event_count` and `has_offer` (whether a handoff is offered to it)."""
    return read.row(_ONE, id=session_id)


def listed(
    read: Reading,
    *,
    project_id: bytes | None = None,
    owner: str | None = None,
    all_owners: bool = False,
    is_open: bool | None = None,
    before: tuple[int, bytes] | None = None,
    limit: int = 50,
) -> list[Row]:
    """Sessions with the newest activity first, with `project`, `workspace`, `event_count` and `page_path` (NULL: no page).

    `before` (UTC microseconds of `last_event_at`, and the id) continues a list behind that row; rows of `owner` and shared ones are seen.
    """
    at, last = _END_OF_TIME if before is None else before
    wanted: dict[str, Any] = {
        "owner": owner,
        "all_owners": int(all_owners),
        "is_open": None if is_open is None else int(is_open),
        "before": at,
        "before_id": last,
        "limit": limit,
    }
    if project_id is None:
        return read.rows(_LIST, **wanted)
    return read.rows(_LIST_OF_PROJECT, project_id=project_id, **wanted)


def open_projects(read: Reading, *, owner: str | None, limit: int = 10) -> list[Row]:
    """Projects in which a session is open: project_id, project, workspace, last_event_at; newest first."""
    return read.rows(_OPEN_PROJECTS, owner=owner, limit=limit)


def counts(read: Reading, project_id: bytes | None = None) -> Row:
    """`total`, `open` and `last_event_at` (NULL: none) of a project's sessions, or of all."""
    return read.rows(_COUNTS, project_id=project_id)[0]


def page_of(read: Reading, page_id: bytes) -> Row | None:
    """Of a session's page: project_id, path, tombstoned_at, cause of its newest version."""
    return read.row(_PAGE, page_id=page_id)


def add(tx: Transaction, **columns: Any) -> None:
    """Insert a session; every column of the table is named."""
    tx.run(_ADD, **columns)


def current(tx: Transaction, session_id: bytes) -> Row | None:
    """As `one` without `event_count`, for the many events of a batch: read once, and kept with what they changed."""
    row = tx.known(session_id)
    if row is None:
        found = tx.row(_CURRENT, id=session_id)
        if found is not None:
            row = dict(found)
            tx.know(session_id, row)
    return row


def count_event(
    tx: Transaction,
    session_id: bytes,
    *,
    substance: int,
    moment: int,
    title: str | None,
    cwd: str | None,
    model: str | None,
    ended_at: int | None,
    end_reason: str | None,
    refinalise_at: int | None,
) -> None:
    """Count one more event, of `substance` 0 or 1, that happened at `moment`. Title and cwd are taken where there is none,
    a model where there is one; the last three are set as given. Written once for all events of a batch."""
    row = current(tx, session_id)
    if row is None:
        return
    changed: dict[str, Any] = {
        **row,
        "observation_count": row["observation_count"] + 1,
        "substance_count": row["substance_count"] + substance,
        "last_event_at": max(row["last_event_at"], moment),
        "title": title if row["title"] is None else row["title"],
        "cwd": cwd if row["cwd"] is None else row["cwd"],
        "model": row["model"] if model is None else model,
        "ended_at": ended_at,
        "end_reason": end_reason,
        "refinalise_at": refinalise_at,
    }
    tx.write_later(session_id, changed, _COUNT_EVENTS)


def end(tx: Transaction, session_id: bytes, *, ended_at: int, reason: str) -> None:
    tx.run(_END, session_id=session_id, new_ended_at=ended_at, new_end_reason=reason)


def delete(tx: Transaction, session_id: bytes) -> None:
    """With all that belongs to it; its page stays."""
    tx.run(_DELETE, session_id=session_id)


def finalised(tx: Transaction, session_id: bytes, *, count: int | None, page_id: bytes | None) -> None:
    """Set the watermark; `page_id` None leaves the page as it is."""
    tx.run(_FINALISED, session_id=session_id, new_count=count, new_page_id=page_id)


def due(read: Reading, now: int, limit: int) -> list[bytes]:
    """Sessions whose late events are to be worked in, the longest waiting first."""
    return [row["id"] for row in read.rows(_DUE, now=now, limit=limit)]


def idle(read: Reading, before: int, limit: int) -> list[bytes]:
    """Open sessions without an event since `before`, the longest idle first."""
    return [row["id"] for row in read.rows(_IDLE, before=before, limit=limit)]

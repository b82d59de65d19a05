"""Durable sessions: their state, leases and heads, and lists of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import ColumnElement, Select, bindparam, case, func, null, or_, select, tuple_
from sqlalchemy.dialects.sqlite import insert

from memory_core.domain.directory import Directory, DirectoryId
from memory_core.domain.durable_session import DurableSession, Origin
from memory_core.store.statement import Row, Statement
from memory_core.store.tables import projects, sessions, workspaces
from memory_core.store.tables_durable import active_turns, durable_sessions, session_snapshots, tool_batches
from memory_core.store.transaction import Reading, Transaction

_d, _s = durable_sessions.c, sessions.c
_STATE = (
    *_d,
    _s.project_id,
    _s.owner,
    _s.token_scope,
    _s.title,
)
_ONE = Statement(
    select(*_STATE)
    .join_from(durable_sessions, sessions, _s.id == _d.session_id)
    .where(_d.session_id == bindparam("id"), _d.deleted_at.is_(None))
)
_ADD = Statement(
    insert(durable_sessions).values(
        {
            column.name: bindparam(column.name)
            for column in durable_sessions.c
            if column.name != "turns_through"
        }
    )
)
_OF_ID = _d.session_id == bindparam("id")
_CLAIM = Statement(
    durable_sessions.update()
    .where(_OF_ID)
    .values(
        lease_hash=bindparam("new_hash"),
        lease_until=bindparam("new_until"),
        has_replayed=bindparam("new_replayed"),
        path=bindparam("new_path"),
        updated_at=func.max(_d.updated_at, bindparam("now")),
    )
)
_EXTEND = Statement(durable_sessions.update().where(_OF_ID).values(lease_until=bindparam("new_until")))
_CLEAR = Statement(
    durable_sessions.update().where(_OF_ID).values(lease_hash=None, lease_until=None, has_replayed=0)
)
_REPLAYED = Statement(durable_sessions.update().where(_OF_ID).values(has_replayed=1))
_ADVANCE = Statement(
    durable_sessions.update()
    .where(_OF_ID)
    .values(
        last_sequence=bindparam("new_sequence"),
        digest=bindparam("new_digest"),
        has_replayed=bindparam("new_replayed"),
        lease_until=bindparam("new_until"),
        closed_at=case((bindparam("reopens"), null()), else_=_d.closed_at),
        updated_at=func.max(_d.updated_at, bindparam("now")),
    )
)
_TOUCH = Statement(
    durable_sessions.update().where(_OF_ID).values(updated_at=func.max(_d.updated_at, bindparam("now")))
)
_CLOSE = Statement(
    durable_sessions.update()
    .where(_OF_ID)
    .values(
        closed_at=bindparam("now"),
        lease_hash=None,
        lease_until=None,
        has_replayed=0,
        updated_at=func.max(_d.updated_at, bindparam("now")),
    )
)
_HIDE = Statement(
    durable_sessions.update()
    .where(_OF_ID)
    .values(deleted_at=bindparam("now"), lease_hash=None, lease_until=None, has_replayed=0)
)
_HIDDEN = Statement(
    select(_d.session_id)
    .where(_d.deleted_at.is_not(None))
    .order_by(_d.deleted_at, _d.session_id)
    .limit(bindparam("limit"))
)
_IS_HIDDEN = Statement(select(_d.deleted_at).where(_OF_ID, _d.deleted_at.is_not(None)))
_SET_TITLE = Statement(sessions.update().where(_s.id == bindparam("id")).values(title=bindparam("new_title")))
#: The session's line in lists of sessions follows: it is open again, or has ended.
_SEEN = Statement(
    sessions.update()
    .where(_s.id == bindparam("id"))
    .values(
        last_event_at=func.max(_s.last_event_at, bindparam("now")),
        ended_at=bindparam("new_ended_at"),
        end_reason=bindparam("new_reason"),
        substance_count=_s.substance_count + bindparam("substance"),
    )
)
#: Somebody is there, which alone opens no session that has ended.
_VISITED = Statement(
    sessions.update()
    .where(_s.id == bindparam("id"))
    .values(last_event_at=func.max(_s.last_event_at, bindparam("now")))
)

_DETAILS = (
    *_STATE,
    _s.agent,
    _s.started_at,
    _s.ended_at,
    _s.page_id,
    projects.c.name.label("project"),
    workspaces.c.name.label("workspace"),
)


def _detailed(*conditions: ColumnElement[bool]) -> Select[Any]:
    return (
        select(*_DETAILS)
        .join_from(durable_sessions, sessions, _s.id == _d.session_id)
        .join(projects, projects.c.id == _s.project_id)
        .join(workspaces, workspaces.c.id == projects.c.workspace_id)
        .where(
            _d.deleted_at.is_(None),
            or_(bindparam("all_owners"), _s.owner.is_(None), _s.owner == bindparam("owner")),
            *conditions,
        )
    )


def _listing(*conditions: ColumnElement[bool]) -> Statement:
    before = tuple_(_d.updated_at, _d.session_id) < tuple_(bindparam("before_at"), bindparam("before_id"))
    return Statement(
        _detailed(before, *conditions)
        .order_by(_d.updated_at.desc(), _d.session_id.desc())
        .limit(bindparam("limit"))
    )


_SHOW = Statement(_detailed(_OF_ID))
_IN_PROJECT = _s.project_id == bindparam("project_id")
_IN_DIRECTORY = (
    _d.host == bindparam("host"),
    _d.device == bindparam("device"),
    _d.inode == bindparam("inode"),
)
#: By whether a directory and whether a project is asked for.
_LIST: Final[Mapping[tuple[bool, bool], Statement]] = {
    (False, False): _listing(),
    (False, True): _listing(_IN_PROJECT),
    (True, False): _listing(*_IN_DIRECTORY),
    (True, True): _listing(*_IN_DIRECTORY, _IN_PROJECT),
}
_END_OF_TIME: Final = (2**62, b"\xff" * 16)

_OPEN_TURN = Statement(
    select(active_turns.c.session_id)
    .where(active_turns.c.session_id == bindparam("id"))
    .union_all(select(tool_batches.c.session_id).where(tool_batches.c.session_id == bindparam("id")))
    .limit(1)
)

_n = session_snapshots.c
_SNAPSHOT = Statement(
    select(session_snapshots).where(_n.session_id == bindparam("id")).order_by(_n.revision.desc()).limit(1)
)
_ADD_SNAPSHOT = Statement(
    insert(session_snapshots).values({column.name: bindparam(column.name) for column in session_snapshots.c})
)
_SET_AUTHORITY = Statement(
    session_snapshots.update()
    .where(_n.session_id == bindparam("id"), _n.revision == bindparam("of_revision"))
    .values(authority_json=bindparam("new_authority"), updated_at=bindparam("now"))
)


def one(read: Reading, session_id: bytes) -> DurableSession | None:
    """The session's state; None where there is none, or it is being deleted."""
    row = read.row(_ONE, id=session_id)
    return None if row is None else _session(row)


def shown(
    read: Reading, session_id: bytes, *, owner: str | None = None, all_owners: bool = False
) -> Row | None:
    """The session with what people see of it: `agent`, `started_at`, `ended_at`, `page_id`, `project`, `workspace`."""
    return read.row(_SHOW, id=session_id, owner=owner, all_owners=int(all_owners))


def listed(
    read: Reading,
    *,
    owner: str | None = None,
    all_owners: bool = False,
    directory: DirectoryId | None = None,
    project_id: bytes | None = None,
    before: tuple[int, bytes] | None = None,
    limit: int = 50,
) -> list[Row]:
    """Sessions as `shown`, the last touched first. `before` is (`updated_at`, `session_id`) of the last one that was seen.

    A row has some kilobytes at most (title, path), so the number of rows bounds the bytes too.
    """
    at, last = _END_OF_TIME if before is None else before
    wanted: dict[str, Any] = {
        "owner": owner,
        "all_owners": int(all_owners),
        "before_at": at,
        "before_id": last,
        "limit": limit,
    }
    if directory is not None:
        wanted |= {"host": directory.host, "device": directory.device, "inode": directory.inode}
    if project_id is not None:
        wanted["project_id"] = project_id
    return read.rows(_LIST[directory is not None, project_id is not None], **wanted)


def add(tx: Transaction, **columns: Any) -> None:
    """Insert the row of a session that is in `sessions` already; every column of the table but `turns_through` is named."""
    tx.run(_ADD, **columns)


def claim(
    tx: Transaction, session_id: bytes, *, lease_hash: bytes, until: int, has_replayed: bool, path: str
) -> None:
    tx.run(
        _CLAIM,
        id=session_id,
        new_hash=lease_hash,
        new_until=until,
        new_replayed=int(has_replayed),
        new_path=path,
        now=tx.now,
    )


def extend(tx: Transaction, session_id: bytes, until: int) -> None:
    tx.run(_EXTEND, id=session_id, new_until=until)


def clear_lease(tx: Transaction, session_id: bytes) -> None:
    tx.run(_CLEAR, id=session_id)


def replayed(tx: Transaction, session_id: bytes) -> None:
    tx.run(_REPLAYED, id=session_id)


def advance(
    tx: Transaction,
    session_id: bytes,
    *,
    last_sequence: int,
    digest: bytes,
    lease_until: int | None,
    has_replayed: bool,
    reopens: bool,
) -> None:
    """Move the head, which publishes the events up to it. `reopens`: a session that was closed goes on."""
    tx.run(
        _ADVANCE,
        id=session_id,
        new_sequence=last_sequence,
        new_digest=digest,
        new_until=lease_until,
        new_replayed=int(has_replayed),
        reopens=int(reopens),
        now=tx.now,
    )


def touch(tx: Transaction, session_id: bytes) -> None:
    tx.run(_TOUCH, id=session_id, now=tx.now)


def set_title(tx: Transaction, session_id: bytes, title: str) -> None:
    tx.run(_SET_TITLE, id=session_id, new_title=title)


def close(tx: Transaction, session_id: bytes) -> None:
    tx.run(_CLOSE, id=session_id, now=tx.now)


def hide(tx: Transaction, session_id: bytes) -> None:
    """From now on nobody sees the session; its rows are deleted in slices."""
    tx.run(_HIDE, id=session_id, now=tx.now)


def hidden(read: Reading, limit: int) -> list[bytes]:
    """Sessions whose rows are still to be deleted, the oldest first."""
    return [row["session_id"] for row in read.rows(_HIDDEN, limit=limit)]


def is_hidden(read: Reading, session_id: bytes) -> bool:
    return read.row(_IS_HIDDEN, id=session_id) is not None


def has_open_turn(read: Reading, session_id: bytes) -> bool:
    """Whether a turn or a tool batch of it is not finished."""
    return read.row(_OPEN_TURN, id=session_id) is not None


def seen(
    tx: Transaction,
    session_id: bytes,
    *,
    ended_at: int | None = None,
    reason: str | None = None,
    substance: int = 0,
) -> None:
    """Tell the session's line in lists of sessions that something happened; `substance` events were more than a boundary."""
    tx.run(_SEEN, id=session_id, now=tx.now, new_ended_at=ended_at, new_reason=reason, substance=substance)


def visited(tx: Transaction, session_id: bytes) -> None:
    """Tell the session's line in lists of sessions that somebody holds it; an end stays an end."""
    tx.run(_VISITED, id=session_id, now=tx.now)


# --- snapshots ---


def snapshot(read: Reading, session_id: bytes) -> Row | None:
    """The newest revision: revision, schema_version, config_json, authority_json, created_at, updated_at."""
    return read.row(_SNAPSHOT, id=session_id)


def add_snapshot(
    tx: Transaction,
    session_id: bytes,
    *,
    revision: int,
    schema_version: int,
    config_json: str,
    authority_json: str,
) -> None:
    tx.run(
        _ADD_SNAPSHOT,
        session_id=session_id,
        revision=revision,
        schema_version=schema_version,
        config_json=config_json,
        authority_json=authority_json,
        created_at=tx.now,
        updated_at=tx.now,
    )


def set_authority(tx: Transaction, session_id: bytes, revision: int, authority_json: str) -> None:
    tx.run(_SET_AUTHORITY, id=session_id, of_revision=revision, new_authority=authority_json, now=tx.now)


def _session(row: Row) -> DurableSession:
    directory = None
    if row["host"] is not None:
        directory = Directory(host=row["host"], device=row["device"], inode=row["inode"], path=row["path"])
    return DurableSession(
        id=row["session_id"],
        project_id=row["project_id"],
        owner=row["owner"],
        origin=Origin(row["origin"]),
        directory=directory,
        title=row["title"],
        model_reference=row["model_reference"],
        lease_hash=row["lease_hash"],
        lease_until=row["lease_until"],
        has_replayed=bool(row["has_replayed"]),
        last_sequence=row["last_sequence"],
        digest=row["digest"],
        closed_at=row["closed_at"],
        updated_at=row["updated_at"],
    )

"""Observations: one insert per event, and the questions asked of a session's events."""

from __future__ import annotations

from typing import Any

from sqlalchemy import bindparam, case, func, or_, select
from sqlalchemy.dialects.sqlite import insert

from memory_core.store.statement import Row, Statement, text_statement
from memory_core.store.tables import observations
from memory_core.store.transaction import Reading, Transaction

_o = observations.c
#: What a session page and a handoff are made of.
_PROJECTED = (
    _o.seq,
    _o.project_id,
    _o.kind,
    _o.title,
    func.substr(_o.body, 1, bindparam("max_chars")).label("body"),
    _o.tool,
    _o.tool_family,
    _o.command,
    _o.paths,
    _o.outcome,
    _o.agent_id,
    _o.occurred_at,
    _o.recorded_at,
)
_ADD = Statement(
    insert(observations).values(
        {column.name: bindparam(column.name) for column in observations.c if column.name != "seq"}
    )
)
_TWINS_MAX = 8
#: Asked for each event: what is held back is looked at by who asks.
_TWINS = Statement(
    select(_o.source, _o.occurred_at, _o.recorded_at)
    .where(_o.session_id == bindparam("session_id"), _o.twin_hash == bindparam("twin_hash"))
    .order_by(_o.seq.desc())
    .limit(_TWINS_MAX),
    is_apart=True,
)
_FIRST = Statement(
    select(*_PROJECTED)
    .where(_o.session_id == bindparam("session_id"))
    .order_by(_o.seq)
    .limit(bindparam("limit"))
)
_LAST = Statement(
    select(*_PROJECTED)
    .where(_o.session_id == bindparam("session_id"))
    .order_by(_o.seq.desc())
    .limit(bindparam("limit"))
)
_recent = (
    select(_o.seq, _o.kind)
    .where(_o.session_id == bindparam("session_id"))
    .order_by(_o.seq.desc())
    .limit(bindparam("look_back"))
    .subquery()
)
_weight = case((_recent.c.kind == "user-prompt", 0), else_=1)
_TOLD_SEQS = (
    select(_recent.c.seq)
    .where(
        or_(_recent.c.kind == "user-prompt", _recent.c.kind == "stop", _recent.c.kind == "post-compaction")
    )
    .order_by(_weight, _recent.c.seq.desc())
    .limit(bindparam("limit"))
)
_TOLD = Statement(select(*_PROJECTED).where(_o.seq.in_(_TOLD_SEQS)))
_PAGE = Statement(
    select(
        _o.seq,
        _o.id,
        _o.kind,
        _o.source_event,
        _o.speaker,
        _o.title,
        func.substr(_o.body, 1, bindparam("max_chars")).label("body"),
        func.length(_o.body).label("body_chars"),
        _o.tool,
        _o.tool_family,
        func.substr(_o.command, 1, bindparam("max_chars")).label("command"),
        _o.paths,
        _o.outcome,
        func.substr(_o.result, 1, bindparam("max_chars")).label("result"),
        _o.agent_id,
        _o.importance,
        _o.occurred_at,
        _o.recorded_at,
    )
    .where(_o.session_id == bindparam("session_id"), _o.seq > bindparam("after"))
    .order_by(_o.seq)
    .limit(bindparam("limit"))
)
_JOURNAL = Statement(
    select(
        _o.seq,
        _o.kind,
        _o.body,
        _o.tool,
        _o.tool_call,
        _o.command,
        _o.paths,
        _o.outcome,
        _o.result,
        _o.agent_id,
    )
    .where(_o.session_id == bindparam("session_id"), _o.seq > bindparam("after"))
    .order_by(_o.seq)
    .limit(bindparam("limit"))
)
_BEFORE = Statement(
    select((_o.seq - 1).label("before")).where(
        _o.session_id == bindparam("session_id"), _o.id == bindparam("id")
    )
)
_COUNT = Statement(
    select(func.count().label("count"), func.max(_o.recorded_at).label("last_at")).where(
        or_(bindparam("project_id").is_(None), _o.project_id == bindparam("project_id"))
    )
)


_DROP_SOME = text_statement(
    "DELETE FROM observations WHERE seq IN"
    " (SELECT seq FROM observations WHERE session_id = :session_id ORDER BY seq DESC LIMIT :limit)"
)


def drop_some(tx: Transaction, session_id: bytes, limit: int) -> int:
    """Delete the last `limit` observations of a session that goes; how many there were."""
    return tx.run(_DROP_SOME, session_id=session_id, limit=limit)


def add(tx: Transaction, row: dict[str, Any]) -> None:
    """Insert one observation, with the others of its batch; every column but `seq` is named."""
    key = (row["session_id"], row["twin_hash"])
    tx.insert_later(_ADD, row)
    tx.know(key, [row, *(tx.known(key) or ())])


def twins(tx: Transaction, session_id: bytes, twin_hash: bytes) -> list[Row]:
    """Source and times of the session's newest events that say the same."""
    stored = tx.rows(_TWINS, session_id=session_id, twin_hash=twin_hash)
    held = tx.known((session_id, twin_hash))
    return stored if held is None else [*held, *stored][:_TWINS_MAX]


def projection(
    read: Reading, session_id: bytes, *, limit: int, look_back: int, body_max_chars: int
) -> list[Row]:
    """At most `limit` events that stand for the session, in order: its first and last ones always, and of the
    last `look_back` the newest prompts, then what the agent said. The work is bounded, however long the session is."""
    edge = max(1, limit // 8)
    rows = {
        row["seq"]: row
        for row in read.rows(_FIRST, session_id=session_id, limit=edge, max_chars=body_max_chars)
    }
    tail = read.rows(_LAST, session_id=session_id, limit=limit - edge, max_chars=body_max_chars)
    if len(tail) < limit - edge:
        return [row for _, row in sorted((rows | {row["seq"]: row for row in tail}).items())]
    told = read.rows(
        _TOLD,
        session_id=session_id,
        look_back=look_back,
        limit=limit - 4 * edge,
        max_chars=body_max_chars,
    )
    kept = rows | {row["seq"]: row for row in tail[: 3 * edge]}
    for row in (*sorted(told, key=lambda row: -row["seq"]), *tail[3 * edge :]):
        if len(kept) >= limit:
            break
        kept[row["seq"]] = row
    return [row for _, row in sorted(kept.items())]


def of_session(
    read: Reading, session_id: bytes, *, after: int = 0, limit: int = 100, body_max_chars: int = 2_000
) -> list[Row]:
    """A session's observations in order, behind `seq` `after`; texts are cut to `body_max_chars` characters."""
    return read.rows(_PAGE, session_id=session_id, after=after, limit=limit, max_chars=body_max_chars)


def before(read: Reading, session_id: bytes, observation_id: bytes) -> int:
    """Behind which `seq` that observation of the session comes next; 0 where the session has none of this id."""
    row = read.row(_BEFORE, session_id=session_id, id=observation_id)
    return 0 if row is None else row["before"]


def journal(read: Reading, session_id: bytes, *, after: int, limit: int) -> list[Row]:
    """A session's observations in order, behind `seq` `after`, with all that they say of who did what."""
    return read.rows(_JOURNAL, session_id=session_id, after=after, limit=limit)


def count(read: Reading, project_id: bytes | None = None) -> Row:
    """`count` and `last_at` (NULL: none) of a project's observations, or of all."""
    return read.rows(_COUNT, project_id=project_id)[0]

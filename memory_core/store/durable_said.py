"""What was said in sessions whose exact events are kept, once more as turns: the units by which it is found."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import bindparam
from sqlalchemy.dialects import sqlite

from memory_core.store.statement import Row, Statement, text_statement
from memory_core.store.tables import observations, sessions
from memory_core.store.tables_durable import durable_sessions
from memory_core.store.transaction import Reading, Transaction

_d, _s = durable_sessions.c, sessions.c
_NEXT = text_statement(
    "SELECT session_id FROM durable_sessions INDEXED BY ix_durable_sessions_turns"
    " WHERE origin = 'client' AND turns_through < last_sequence AND deleted_at IS NULL LIMIT 1"
)
_PLACE = text_statement(
    "SELECT d.turns_through, d.last_sequence, s.project_id, s.owner, s.token_scope"
    " FROM durable_sessions AS d JOIN sessions AS s ON s.id = d.session_id"
    " WHERE d.session_id = :id AND d.origin = 'client' AND d.turns_through < d.last_sequence AND d.deleted_at IS NULL"
)
_ADVANCE = Statement(
    durable_sessions.update()
    .where(_d.session_id == bindparam("id"))
    .values(turns_through=bindparam("through"))
)
# An event that was brought in has an id of somebody else's making.
_ADD = Statement(
    sqlite.insert(observations)
    .values({column.name: bindparam(column.name) for column in observations.c if column.name != "seq"})
    .on_conflict_do_nothing()
)
_COUNT = Statement(
    sessions.update()
    .where(_s.id == bindparam("session_id"))
    .values(observation_count=_s.observation_count + bindparam("more"))
)


def next_behind(read: Reading) -> bytes | None:
    """A session with events of which no turns are made yet."""
    row = read.row(_NEXT)
    return None if row is None else row["session_id"]


def place(read: Reading, session_id: bytes) -> Row | None:
    """turns_through, last_sequence, project_id, owner and token_scope of such a session; None of any other."""
    return read.row(_PLACE, id=session_id)


def add(tx: Transaction, session_id: bytes, rows: Iterable[dict[str, Any]], *, through: int) -> int:
    """Insert observations of a session, every column but `seq` named; its events are turns up to `through` from now on. How many."""
    count = sum(tx.run(_ADD, **row) for row in rows)
    if count:
        tx.run(_COUNT, session_id=session_id, more=count)
    tx.run(_ADVANCE, id=session_id, through=through)
    return count

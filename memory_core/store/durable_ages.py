"""Durable sessions that have become old, and leases that ran out."""

from __future__ import annotations

from sqlalchemy import bindparam, exists, func, or_, select

from memory_core.store.hook_journals import JOURNAL_OF_SESSION
from memory_core.store.statement import Statement, text_statement
from memory_core.store.tables import sessions
from memory_core.store.tables_durable import (
    active_turns,
    distillations,
    durable_sessions,
    session_events,
    tool_batches,
)
from memory_core.store.tables_jobs import jobs
from memory_core.store.transaction import Reading, Transaction

_d = durable_sessions.c
_CLEAR_EXPIRED = Statement(
    durable_sessions.update()
    .where(
        _d.session_id.in_(
            select(_d.session_id).where(_d.lease_until <= bindparam("now")).limit(bindparam("limit"))
        )
    )
    .values(lease_hash=None, lease_until=None, has_replayed=0)
)
_distilled_through = (
    select(func.coalesce(func.max(distillations.c.through_sequence), 0))
    .join_from(distillations, jobs, jobs.c.id == distillations.c.job_id)
    .where(distillations.c.session_id == _d.session_id, jobs.c.state == "completed")
    .correlate(durable_sessions)
    .scalar_subquery()
)
#: All that was said was distilled; a summary that came after that says nothing new.
_IS_DISTILLED = ~(
    exists()
    .where(session_events.c.session_id == _d.session_id)
    .where(session_events.c.sequence > _distilled_through)
    .where(session_events.c.sequence <= _d.last_sequence)
    .where(session_events.c.kind != "summary")
    .correlate(durable_sessions)
)
#: Of a session that hooks tell of: it has ended, nothing came after what its end was made of, and every job that was to write it
#: did so.
_IS_WRITTEN = (
    exists()
    .where(
        sessions.c.id == _d.session_id,
        sessions.c.ended_at.is_not(None),
        sessions.c.finalised_count == sessions.c.observation_count,
    )
    .where(exists().where(JOURNAL_OF_SESSION).correlate(sessions))
    .where(~exists().where(JOURNAL_OF_SESSION, jobs.c.state != "completed").correlate(sessions))
    .correlate(durable_sessions)
)
_PAST_AGE = Statement(
    select(_d.session_id)
    .where(
        or_(_d.origin == "client", _IS_WRITTEN),
        _d.deleted_at.is_(None),
        _d.updated_at <= bindparam("before"),
        or_(_d.lease_until.is_(None), _d.lease_until <= bindparam("now")),
        ~exists().where(active_turns.c.session_id == _d.session_id),
        ~exists().where(tool_batches.c.session_id == _d.session_id),
        _IS_DISTILLED,
    )
    .order_by(_d.updated_at, _d.session_id)
    .limit(bindparam("limit"))
)
_OPTIMIZE = text_statement("PRAGMA optimize")


def clear_expired_leases(tx: Transaction, limit: int) -> int:
    """Leases that ran out are nobody's any more, not even to renew; how many."""
    return tx.run(_CLEAR_EXPIRED, now=tx.now, limit=limit)


def past_age(read: Reading, *, before: int, now: int, limit: int) -> list[bytes]:
    """Sessions that nobody wrote since `before` (UTC microseconds), the oldest first. None with a live lease, an unfinished turn, or
    an end that was never distilled: it would be lost. Of those that hooks tell of none that is open or not wholly written."""
    return [row["session_id"] for row in read.rows(_PAST_AGE, before=before, now=now, limit=limit)]


def optimize(tx: Transaction) -> None:
    """Let SQLite refresh the statistics of tables that changed much; bounded by its own analysis limit."""
    tx.run(_OPTIMIZE)

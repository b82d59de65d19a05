"""Jobs that are about a durable session: what a distillation or a compaction is made of, and which are under way."""

from __future__ import annotations

from typing import Any

from sqlalchemy import bindparam, func, select
from sqlalchemy.dialects.sqlite import insert

from memory_core.store.hook_journals import JOURNAL_OF_SESSION
from memory_core.store.statement import Row, Statement
from memory_core.store.tables import sessions
from memory_core.store.tables_durable import compactions, distillations, durable_sessions, session_events
from memory_core.store.tables_jobs import jobs
from memory_core.store.transaction import Reading, Transaction

_c, _d, _j = compactions.c, distillations.c, jobs.c
_ADD_DISTILLATION = Statement(
    insert(distillations).values(
        {
            name: bindparam(name)
            for name in (
                "job_id",
                "session_id",
                "through_sequence",
                "event_count",
                "first_event_id",
                "last_event_id",
                "sha256",
                "created_at",
            )
        }
    )
)
#: By its subject: kinds of other makers name a session so, too.
_RUNNING = Statement(
    select(_j.id, _j.lease_until)
    .where(_j.subject == bindparam("subject"), _j.state == "running", _j.lease_until > bindparam("now"))
    .limit(1)
)
_OF_SESSION = Statement(
    select(_c.job_id)
    .where(_c.session_id == bindparam("session_id"))
    .union(
        select(_d.job_id).where(_d.session_id == bindparam("session_id")),
        select(_j.id.label("job_id"))
        .join_from(sessions, jobs, JOURNAL_OF_SESSION)
        .where(sessions.c.id == bindparam("session_id")),
    )
)
_HELD = Statement(
    select(durable_sessions.c.lease_until).where(durable_sessions.c.session_id == bindparam("session_id"))
)
_DELETE_JOB = Statement(jobs.delete().where(_j.id == bindparam("job_id")))
_LAST_DISTILLED = Statement(
    select(_d.through_sequence, _j.state)
    .join_from(distillations, jobs, _j.id == _d.job_id)
    .where(_d.session_id == bindparam("session_id"))
    .order_by(_d.through_sequence.desc())
    .limit(1)
)
#: A summary says nothing that was not said before it.
_UNDISTILLED = Statement(
    select(func.count().label("count")).where(
        session_events.c.session_id == bindparam("session_id"),
        session_events.c.sequence > bindparam("after"),
        session_events.c.sequence <= bindparam("through"),
        session_events.c.kind != "summary",
    )
)
#: Of several that cover the same, the last one.
_COMPACTED = Statement(
    select(compactions)
    .where(_c.session_id == bindparam("session_id"), _c.summary_event_id.is_not(None))
    .order_by(_c.through_sequence.desc(), _c.completed_at.desc(), _c.job_id.desc())
    .limit(1)
)


def held_until(read: Reading, subject: str) -> int | None:
    """Until when somebody holds, or held last, the session that a job is about, UTC microseconds."""
    row = read.row(_HELD, session_id=bytes.fromhex(subject))
    return None if row is None else row["lease_until"]


def subject_of(session_id: bytes) -> str:
    """What a job about a session calls it."""
    return session_id.hex()


def add_distillation(tx: Transaction, **columns: Any) -> None:
    """What the job is made of: job_id, session_id, through_sequence, event_count, first_event_id, last_event_id, sha256."""
    tx.run(_ADD_DISTILLATION, created_at=tx.now, **columns)


def worker_lease(read: Reading, session_id: bytes, now: int) -> int | None:
    """Until when a worker has a job about the session, UTC microseconds; None where none has."""
    row = read.row(_RUNNING, subject=subject_of(session_id), now=now)
    return None if row is None else row["lease_until"]


def delete_jobs(tx: Transaction, session_id: bytes) -> int:
    """Delete the session's compactions and distillations with their jobs, and those that wrote its transcript: a session that comes
    back under the same id is another one; how many."""
    found = tx.rows(_OF_SESSION, session_id=session_id)
    for row in found:
        tx.run(_DELETE_JOB, job_id=row["job_id"])
    return len(found)


def last_distillation(read: Reading, session_id: bytes) -> Row | None:
    """Of the one that covers most: `through_sequence`, and the `state` of its job."""
    return read.row(_LAST_DISTILLED, session_id=session_id)


def undistilled(read: Reading, session_id: bytes, last_sequence: int) -> int:
    """How many of a session's events, summaries of others left out, no completed distillation has read."""
    row = last_distillation(read, session_id)
    after = row["through_sequence"] if row is not None and row["state"] == "completed" else 0
    return read.rows(_UNDISTILLED, session_id=session_id, after=after, through=last_sequence)[0]["count"]


def completed_compaction(read: Reading, session_id: bytes) -> Row | None:
    """The one that covers most, as its row; None where none is completed."""
    return read.row(_COMPACTED, session_id=session_id)

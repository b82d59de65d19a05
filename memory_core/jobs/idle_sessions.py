"""Ends sessions that went silent: their client died, or has no event for the end."""

from __future__ import annotations

from dataclasses import dataclass

from memory_core import limits
from memory_core.clock import MICROSECONDS
from memory_core.commands.sessions import end_if_idle
from memory_core.domain.job import Again, Done, Job
from memory_core.job_kind import Applied, JobKind, Tools, register
from memory_core.store import sessions
from memory_core.store.transaction import Reading, Transaction

_IDLE_US = limits.SESSION_IDLE_SECONDS * MICROSECONDS


@dataclass(frozen=True, kw_only=True)
class IdleSessions:
    """The longest idle ones, a few at a time."""

    sessions: tuple[bytes, ...]


def prepare(reading: Reading, job: Job) -> IdleSessions:
    before = (job.claimed_at or job.created_at) - _IDLE_US
    return IdleSessions(sessions=tuple(sessions.idle(reading, before, limits.IDLE_SESSIONS_PER_SLICE)))


def compute(found: IdleSessions, _tools: Tools) -> IdleSessions:
    """Nothing to work out: which of them are still idle is seen when they are ended."""
    return found


def apply(found: IdleSessions, job: Job, tx: Transaction) -> Applied:
    ended = sum(end_if_idle(tx, session_id) for session_id in found.sessions)
    total = ended + (job.cursor or {}).get("ended", 0)
    # A session that cannot be ended must not bring the job back for ever.
    if ended and sessions.idle(tx, tx.now - _IDLE_US, 1):
        return Again(cursor={"ended": total})
    return Done(result={"ended": total})


register(
    JobKind(
        name="idle_sessions",
        queue="forget",
        input=IdleSessions,
        output=IdleSessions,
        prepare=prepare,
        compute=compute,
        apply=apply,
        schedule="every 15m",
        is_inline=True,
    )
)

"""Writes what hooks told of a session as its transcript, which is compacted, and distilled at its end, as any other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from memory_core import limits
from memory_core.commands.compaction import planned
from memory_core.commands.hook_journal import follow_up, write_slice
from memory_core.domain.compaction import Policy
from memory_core.domain.job import Again, Done, Job
from memory_core.job_kind import Applied, JobKind, Tools, register
from memory_core.store import durable_sessions, sessions
from memory_core.store.hook_journals import KIND
from memory_core.store.transaction import Reading, Transaction


@dataclass(frozen=True, kw_only=True)
class Next:
    """Up to where the session is to be compacted when all of it is written; None: nowhere."""

    compact_through: int | None = None


def prepare(reading: Reading, job: Job) -> Next:
    """Nothing while there is more to write; then the plan, which reads the sizes of all events."""
    if not (job.cursor or {}).get("is_written"):
        return Next()
    session = durable_sessions.one(reading, bytes.fromhex(job.subject))
    if session is None:
        return Next()
    plan = planned(reading, session, Policy(context_window_tokens=limits.MODEL_CONTEXT_TOKENS))
    return Next(compact_through=None if plan is None else plan.through_sequence)


def compute(given: Next, _tools: Tools) -> Next:
    """Nothing to work out: the writer folds what it reads itself, since the session may have gone on."""
    return given


def apply(given: Next, job: Job, tx: Transaction) -> Applied:
    session = sessions.one(tx, bytes.fromhex(job.subject))
    if session is None:
        return Done(result={"turns": 0})
    cursor: dict[str, Any] = dict(job.cursor or {"after": 0, "turns": 0, "unobserved": 0})
    if cursor.get("is_written"):
        jobs = follow_up(tx, session, compact_through=given.compact_through)
        return Done(result={"turns": cursor["turns"], "unobserved": cursor["unobserved"], **jobs})
    written = write_slice(tx, session, after=cursor["after"])
    if written is None:
        return Done(result={"turns": 0})
    return Again(
        cursor={
            "after": written.through,
            "turns": cursor["turns"] + written.turns,
            "unobserved": cursor["unobserved"] + written.unobserved,
            "is_written": not written.has_more,
        }
    )


register(
    JobKind(
        name=KIND,
        queue="forget",
        input=Next,
        output=Next,
        prepare=prepare,
        compute=compute,
        apply=apply,
        per="session",
        is_inline=True,
    )
)

"""Has what hooks told of sessions written as transcripts, without anybody asking: of those that go on, and of those whose end came
before there was anybody to write it. Where nothing happened there is nothing to write, and no job is made."""

from __future__ import annotations

from dataclasses import dataclass

from memory_core import limits
from memory_core.commands.hook_journal import queue_hook_journal
from memory_core.domain.job import Again, Done, Job
from memory_core.ids import id_bytes, id_text
from memory_core.job_kind import Applied, JobKind, Tools, register
from memory_core.store import hook_journals, sessions
from memory_core.store.transaction import Reading, Transaction


@dataclass(frozen=True, kw_only=True)
class UnwrittenSessions:
    """Some of them, by id; behind them there may be `more`."""

    sessions: tuple[bytes, ...]
    more: bool = False


def prepare(reading: Reading, job: Job) -> UnwrittenSessions:
    after = (job.cursor or {}).get("after")
    found = hook_journals.unwritten(
        reading, after=id_bytes(after) if after else b"", limit=limits.UNWRITTEN_SESSIONS_PER_SLICE
    )
    return UnwrittenSessions(sessions=tuple(found), more=len(found) == limits.UNWRITTEN_SESSIONS_PER_SLICE)


def compute(found: UnwrittenSessions, _tools: Tools) -> UnwrittenSessions:
    """Nothing to work out: which of them are still unwritten is seen when their jobs are made."""
    return found


def apply(found: UnwrittenSessions, job: Job, tx: Transaction) -> Applied:
    queued = (job.cursor or {}).get("queued", 0)
    for session_id in found.sessions:
        session = sessions.one(tx, session_id)
        if session is not None:
            with tx.on_behalf(session["owner"], session["token_scope"]):
                queued += queue_hook_journal(tx, session)
    if found.more:
        return Again(cursor={"after": id_text(found.sessions[-1]), "queued": queued})
    return Done(result={"queued": queued})


register(
    JobKind(
        name="unwritten_sessions",
        queue="forget",
        input=UnwrittenSessions,
        output=UnwrittenSessions,
        prepare=prepare,
        compute=compute,
        apply=apply,
        schedule="every 1h",
        is_inline=True,
    )
)

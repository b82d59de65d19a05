"""Asking that the beginning of a durable session be summed up: up to where, and the job that does it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from memory_core import job_kind, limits
from memory_core.commands import Answer, command
from memory_core.commands.durable_lease import find, refusing
from memory_core.domain.command import Refusal
from memory_core.domain.compaction import Earlier, Plan, Policy, plan, turns_of
from memory_core.domain.durable_session import DurableSession
from memory_core.domain.job import State
from memory_core.domain.session_event import SessionEvent
from memory_core.errors import Conflict, Corrupt, Invalid
from memory_core.ids import id_text
from memory_core.store import compactions, jobs, session_events, session_jobs
from memory_core.store.transaction import Reading, Transaction

KIND: Final = "compaction"


@dataclass(frozen=True, kw_only=True)
class QueueCompaction:
    """Sum up everything up to an event that ends a turn."""

    session: bytes
    through_sequence: int
    #: What it follows from, for the answer.
    plan: dict[str, int] | None = None


@command(QueueCompaction, name="queue_compaction")
@refusing
def queue(body: QueueCompaction, tx: Transaction) -> Answer | Refusal:
    """Answer: `{"plan", "job": {"id", "state", "through_sequence"}, "is_new"}`. Where there is a compaction up to that event, in whatever state, it is that one.

    `Invalid` for an event that there is not, that ends no turn, or that lies before the summary of an earlier compaction;
    `Conflict` while another compaction of the session waits or runs.
    """
    session = find(tx, body.session, tx.principal)
    job_id, is_new = queue_compaction(tx, session, body.through_sequence)
    job = jobs.one(tx, job_id)
    state = State.PENDING if job is None else job.state
    about = {"id": id_text(job_id), "state": state.value, "through_sequence": body.through_sequence}
    return {"plan": body.plan, "job": about, "is_new": is_new}


def queue_compaction(tx: Transaction, session: DurableSession, through: int) -> tuple[bytes, bool]:
    """As `QueueCompaction`: the job's id, and whether it is new."""
    event = _boundary(tx, session, through)
    known = compactions.at_boundary(tx, session.id, through)
    if known is not None:
        return known["job_id"], False
    other = compactions.unfinished(tx, session.id)
    if other is not None:
        raise Conflict(
            f"a compaction up to event {other['through_sequence']} is under way; wait until it has ended"
        )
    earlier = earlier_compaction(tx, session.id)
    if earlier is not None and through < earlier.summary_sequence:
        raise Invalid(
            f"through_sequence: not before event {earlier.summary_sequence}, the summary of an earlier compaction"
        )
    first = session_events.at(tx, session.id, 1)
    if first is None:
        raise Corrupt("event 1 of the session is missing")
    job_id, is_new = job_kind.enqueue(
        tx,
        KIND,
        source_digest=event.digest,
        project_id=session.project_id,
        subject=session_jobs.subject_of(session.id),
        is_asked_for=True,
    )
    if job_id is None:
        raise Corrupt("a compaction that was asked for was left out")
    if is_new:
        compactions.add(
            tx,
            job_id=job_id,
            session_id=session.id,
            through_sequence=through,
            event_count=through,
            first_event_id=first.id,
            last_event_id=event.id,
            sha256=event.digest,
        )
    return job_id, is_new


def planned(
    reading: Reading, session: DurableSession, policy: Policy, *, current_tokens: int | None = None
) -> Plan | None:
    """Up to where the session is to be compacted now; None where it is not. Raises `Corrupt` for a broken transcript.

    Reads the size of each event behind the last compaction, none of their texts.
    """
    earlier = earlier_compaction(reading, session.id)
    events = compactions.sizes(
        reading,
        session.id,
        after=0 if earlier is None else earlier.through_sequence,
        through=session.last_sequence,
        limit=limits.COMPACTION_EVENTS_MAX,
    )
    if len(events) == limits.COMPACTION_EVENTS_MAX:
        # The last turn may be cut there.
        events = events[: -(events[-1].turn_index + 1)]
    return plan(turns_of(events), policy, current_tokens=current_tokens, earlier=earlier)


def earlier_compaction(reading: Reading, session_id: bytes) -> Earlier | None:
    """The completed compaction that covers most. Raises `Corrupt` where its summary is gone."""
    row = session_jobs.completed_compaction(reading, session_id)
    if row is None:
        return None
    summary = session_events.by_id(reading, row["summary_event_id"])
    if summary is None or summary.session_id != session_id:
        raise Corrupt("the summary of a compaction is missing")
    return Earlier(through_sequence=row["through_sequence"], summary_sequence=summary.sequence)


def _boundary(tx: Transaction, session: DurableSession, through: int) -> SessionEvent:
    event = session_events.at(tx, session.id, through) if 0 < through <= session.last_sequence else None
    if event is None:
        raise Invalid(f"through_sequence: the session has events 1 to {session.last_sequence}")
    if event.turn_index + 1 != event.turn_size:
        end = event.sequence - event.turn_index + event.turn_size - 1
        raise Invalid(
            f"through_sequence: event {through} does not end its turn, which is not divided; the turn ends with event {end}"
        )
    return event

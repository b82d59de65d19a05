"""Asking that knowledge be drawn from a durable session."""

from __future__ import annotations

from typing import Final

from memory_core import job_kind
from memory_core.domain.durable_session import DurableSession
from memory_core.store import session_events, session_jobs
from memory_core.store.transaction import Transaction

KIND: Final = "distillation"


def queue_distillation(tx: Transaction, session: DurableSession) -> bytes | None:
    """The job that draws knowledge from the session as it is; None for one without events, or where such jobs are left out.

    Where there is a job for this very transcript, in whatever state, it is that one.
    """
    if session.last_sequence == 0 or KIND not in job_kind.kinds:
        return None
    first = session_events.at(tx, session.id, 1)
    last = session_events.at(tx, session.id, session.last_sequence)
    if first is None or last is None:
        return None
    job_id, is_new = job_kind.enqueue(
        tx,
        KIND,
        source_digest=session.digest,
        project_id=session.project_id,
        subject=session_jobs.subject_of(session.id),
        # A session that ended is what the kind is there for: nobody will come back to ask again.
        is_asked_for=True,
    )
    if job_id is not None and is_new:
        session_jobs.add_distillation(
            tx,
            job_id=job_id,
            session_id=session.id,
            through_sequence=session.last_sequence,
            event_count=session.last_sequence,
            first_event_id=first.id,
            last_event_id=last.id,
            sha256=session.digest,
        )
    return job_id

"""Compactions and distillations of an imported session, in the states that they were in; a claim of the other program is over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from memory_core import job_kind, limits
from memory_core.commands import Answer, command, compaction, distillation
from memory_core.commands.durable_lease import find, refusing
from memory_core.commands.imported_sessions import SOURCE, moment
from memory_core.domain.command import Refusal
from memory_core.domain.durable_session import DurableSession
from memory_core.domain.job import Job, State
from memory_core.domain.session_event import SessionEvent, TranscriptKind
from memory_core.errors import Invalid, NotFound
from memory_core.store import imports, jobs, session_events, session_jobs
from memory_core.store.transaction import Reading, Transaction

#: Of a failure whose words are not known.
_FAILED: Final = "it failed in the program that it was imported from"
#: The only maker of summaries and candidates there.
_MAKER: Final = "model"
_STATES: Final = {state.value: state for state in (State.PENDING, State.COMPLETED, State.FAILED)}


@dataclass(frozen=True, kw_only=True)
class ImportedResult:
    """What became of one candidate of a distillation."""

    candidate_index: int
    knowledge: bytes
    version: int
    action: str


@dataclass(frozen=True, kw_only=True)
class ImportedJob:
    """`state`: pending, completed or failed. A completed compaction names its `summary`."""

    id: bytes
    kind: str
    through_sequence: int
    state: str
    failures: int
    last_error: str | None
    created_at: int
    updated_at: int
    summary: bytes | None = None
    results: tuple[ImportedResult, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ImportJobs:
    session: bytes
    jobs: tuple[ImportedJob, ...]


@command(ImportJobs, name="import_session_jobs")
@refusing
def take_jobs(body: ImportJobs, tx: Transaction) -> Answer | Refusal:
    """Answer: `{"taken"}`: how many were not here. Also of a session that is here already."""
    session = find(tx, body.session, tx.principal)
    if imports.one(tx, SOURCE, imports.SESSION, session.id) is None:
        raise NotFound("that session was not imported")
    made = [(told, _job(tx, session, told)) for told in body.jobs]
    first = session_events.at(tx, session.id, 1)
    taken = 0
    for told, (job, last) in made:
        if first is None or imports.has_job(tx, job.id) or jobs.same(tx, job) is not None:
            continue
        taken += 1
        _add(tx, session, told, job, first, last)
    return {"taken": taken}


def _job(tx: Transaction, session: DurableSession, told: ImportedJob) -> tuple[Job, SessionEvent]:
    """Raises `Invalid`."""
    state = _STATES.get(told.state)
    if state is None or told.kind not in (compaction.KIND, distillation.KIND):
        raise Invalid(
            f"a job is pending, completed or failed, and a compaction or distillation, not {told.state!r}"
        )
    last = session_events.at(tx, session.id, told.through_sequence)
    if last is None or last.turn_index + 1 != last.turn_size:
        raise Invalid(f"a job ends with event {told.through_sequence}, which ends no turn")
    if told.failures < 0 or (told.kind == compaction.KIND and state is State.COMPLETED) != (
        told.summary is not None
    ):
        raise Invalid("a completed compaction, and it alone, has a summary")
    _check_summary(tx, session, told)
    at, has_ended = moment("updated_at", told.updated_at), state is not State.PENDING
    failures = max(told.failures, 1) if state is State.FAILED else 0 if has_ended else told.failures
    kind = job_kind.kinds.get(told.kind)
    job = Job(
        id=told.id,
        kind=kind.name,
        queue=kind.queue,
        project_id=session.project_id,
        subject=session_jobs.subject_of(session.id),
        source_digest=last.digest,
        on_data_host=kind.on_data_host,
        principal=session.owner or SOURCE,
        token_scope=tx.token_scope,
        state=state,
        failures=failures,
        claims=1 if has_ended else 0,
        worker=SOURCE if has_ended else None,
        claimed_at=at if has_ended else None,
        last_error=_error(told) if failures else None,
        result={"imported": True} if state is State.COMPLETED else None,
        created_at=moment("created_at", told.created_at),
        updated_at=at,
        finished_at=at if has_ended else None,
    )
    return job, last


def _check_summary(read: Reading, session: DurableSession, told: ImportedJob) -> None:
    if told.summary is None:
        return
    event = imports.event(read, told.summary)
    if event is None or (event["session_id"], event["kind"]) != (session.id, TranscriptKind.SUMMARY.value):
        raise Invalid("the summary of a compaction is not there")


def _error(told: ImportedJob) -> str:
    text = (told.last_error or "").strip() or _FAILED
    return text.encode()[: limits.JOB_ERROR_MAX_BYTES].decode("utf-8", "ignore")


def _add(
    tx: Transaction,
    session: DurableSession,
    told: ImportedJob,
    job: Job,
    first: SessionEvent,
    last: SessionEvent,
) -> None:
    imports.add_job(tx, job)
    is_done = job.state is State.COMPLETED
    columns = {
        "job_id": job.id,
        "session_id": session.id,
        "through_sequence": last.sequence,
        "event_count": last.sequence,
        "first_event_id": first.id,
        "last_event_id": last.id,
        "sha256": last.digest,
        "made_by": _MAKER if is_done else None,
        "created_at": job.created_at,
        "completed_at": job.updated_at if is_done else None,
    }
    if told.kind == compaction.KIND:
        imports.add_compaction(tx, **columns, summary_event_id=told.summary)
        return
    imports.add_distillation(tx, **columns)
    for result in told.results:
        imports.add_result(
            tx,
            job_id=job.id,
            candidate_index=result.candidate_index,
            knowledge_id=result.knowledge,
            version=result.version,
            action=result.action,
            created_at=job.updated_at,
        )

"""What people do about jobs: cancel one, try a failed one again, pause a queue, run a schedule now."""

from __future__ import annotations

from dataclasses import dataclass

from memory_core import job_kind
from memory_core.commands import Answer, command
from memory_core.domain import job as rules
from memory_core.domain.command import Refusal
from memory_core.domain.job import QUEUES, Job, State
from memory_core.errors import CoreError, Invalid
from memory_core.ids import id_bytes, id_text
from memory_core.job_kind import JobKind
from memory_core.store import audit, job_claims, jobs, projects, schedule_slots
from memory_core.store.transaction import Transaction


@dataclass(frozen=True, kw_only=True)
class CancelJob:
    """A pending job ends at once, a running one when its worker hears of it. A failed one is dismissed: nobody waits for it."""

    job: str


@dataclass(frozen=True, kw_only=True)
class RetryJob:
    """A failed or cancelled job is pending again: the same job, its failures forgotten."""

    job: str


@dataclass(frozen=True, kw_only=True)
class PauseQueue:
    """The queue gives no job; what runs goes on."""

    queue: str


@dataclass(frozen=True, kw_only=True)
class ResumeQueue:
    queue: str


@dataclass(frozen=True, kw_only=True)
class RunSchedule:
    """A job of that kind now, whatever its schedule; of one project where the kind works by project."""

    kind: str
    workspace: str | None = None
    project: str | None = None


@command(CancelJob, name="cancel_job")
def cancel(body: CancelJob, tx: Transaction) -> Answer | Refusal:
    """Answer: `{"id", "kind", "state", "cancel_asked"}`; a running one stays so until its worker lets go."""
    job = _job(tx, body.job)
    if isinstance(job, Refusal):
        return job
    if job.state is not State.RUNNING and rules.after(job.state, rules.Move.CANCEL) is None:
        return Refusal(code="conflict", message=f"the job is {job.state.value} already")
    after = jobs.save(tx, rules.cancelled(job, now=tx.now))
    audit.record(tx, "job_cancelled", project_id=job.project_id, detail={"job": id_text(job.id)})
    return _answer(after) | {"cancel_asked": after.cancel_asked_at is not None}


@command(RetryJob, name="retry_job")
def retry(body: RetryJob, tx: Transaction) -> Answer | Refusal:
    """Answer: `{"id", "kind", "state"}`."""
    job = _job(tx, body.job)
    if isinstance(job, Refusal):
        return job
    if rules.after(job.state, rules.Move.RETRY) is None:
        return Refusal(
            code="conflict",
            message=f"the job is {job.state.value}; only a failed or cancelled one is tried again",
        )
    after = jobs.save(tx, rules.retried(job, now=tx.now))
    audit.record(tx, "job_retried", project_id=job.project_id, detail={"job": id_text(job.id)})
    return _answer(after)


@command(PauseQueue, name="pause_queue")
def pause(body: PauseQueue, tx: Transaction) -> Answer | Refusal:
    """Answer: `{"queue", "paused", "changed"}`."""
    if body.queue not in QUEUES:
        return _no_queue(body.queue)
    changed = job_claims.pause(tx, body.queue)
    if changed:
        audit.record(tx, "queue_paused", detail={"queue": body.queue})
    return {"queue": body.queue, "paused": True, "changed": changed}


@command(ResumeQueue, name="resume_queue")
def resume(body: ResumeQueue, tx: Transaction) -> Answer | Refusal:
    """Answer: `{"queue", "paused", "changed"}`."""
    if body.queue not in QUEUES:
        return _no_queue(body.queue)
    changed = job_claims.resume(tx, body.queue)
    if changed:
        audit.record(tx, "queue_resumed", detail={"queue": body.queue})
    return {"queue": body.queue, "paused": False, "changed": changed}


@command(RunSchedule, name="run_schedule")
def run(body: RunSchedule, tx: Transaction) -> Answer | Refusal:
    """Answer: `{"id", "kind", "state"}` of the new job."""
    try:
        kind = job_kind.check_runnable(body.kind)
        project_id = _project_of(tx, body, kind)
    except CoreError as error:
        return Refusal(code=error.code, message=str(error))
    # The command's own id: applied twice it is still one run.
    slot = schedule_slots.MANUAL + id_text(tx.envelope.id if tx.envelope else tx.new_id())
    job_id, _ = stage(tx, kind, slot=slot, project_id=project_id, is_asked_for=True)
    audit.record(tx, "schedule_run", project_id=project_id, detail={"kind": kind.name})
    job = None if job_id is None else jobs.one(tx, job_id)
    return _answer(job) if job is not None else None


def stage(
    tx: Transaction,
    kind: JobKind,
    *,
    slot: str,
    project_id: bytes | None = None,
    is_asked_for: bool = False,
) -> tuple[bytes | None, bool]:
    """The job of a slot, made where the slot has none yet: its id, and whether it is new. As `job_kind.enqueue`."""
    job_id, is_new = job_kind.enqueue(
        tx,
        kind.name,
        source_digest=job_kind.digest_of("slot", slot),
        project_id=project_id,
        is_asked_for=is_asked_for,
    )
    schedule_slots.add(tx, kind=kind.name, project_id=project_id, slot=slot, job_id=job_id)
    return job_id, is_new


def _project_of(tx: Transaction, body: RunSchedule, kind: JobKind) -> bytes | None:
    if kind.per == "install":
        if body.project or body.workspace:
            raise Invalid(f"{kind.name} works on the whole install; name no project")
        return None
    if not (body.project and body.workspace):
        raise Invalid(f"{kind.name} works by project; name workspace and project")
    row = projects.named(tx, body.workspace, body.project)
    if row is None:
        raise Invalid(f"there is no project {body.workspace}/{body.project}")
    return row["id"]


def _job(tx: Transaction, text: str) -> Job | Refusal:
    try:
        job = jobs.one(tx, id_bytes(text))
    except Invalid as error:
        return Refusal(code="invalid", message=str(error))
    return job or Refusal(code="not_found", message=f"there is no job {text[:64]}")


def _answer(job: Job) -> dict[str, object]:
    return {"id": id_text(job.id), "kind": job.kind, "state": job.state.value}


def _no_queue(name: str) -> Refusal:
    return Refusal(
        code="not_found", message=f"there is no queue {name[:64]!r}; there are: {', '.join(QUEUES)}"
    )

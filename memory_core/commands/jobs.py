"""What a pool worker does to a job: claims it, keeps its lease, and ends it in one of four ways.

Each command carries the SHA-256 of the lease token, never the token. What the job itself does is its kind's `apply`, in the
transaction in which the job is finished.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from memory_core import job_kind, limits
from memory_core.clock import MICROSECONDS, rfc3339
from memory_core.commands import Answer, command
from memory_core.domain import job as rules
from memory_core.domain.command import Refusal
from memory_core.domain.job import Again, Done, Failure, Job, Later, Reason
from memory_core.errors import Invalid, StaleLease, StorageFailed
from memory_core.ids import id_text
from memory_core.job_kind import Applied, JobKind
from memory_core.store import job_claims, jobs, model_budget
from memory_core.store.transaction import Transaction

logger = logging.getLogger(__name__)

_STALE: Final = Refusal(code=StaleLease.code, message=str(StaleLease()))


@dataclass(frozen=True, kw_only=True)
class ClaimJob:
    """The next job of one of `queues` (the first that has one) for the holder of a lease token."""

    claim: bytes = field(repr=False)
    worker: str
    queues: tuple[str, ...]
    on_data_host: bool = False
    #: Only jobs of this kind; empty: of any.
    kind: str = ""


@dataclass(frozen=True, kw_only=True)
class RenewJob:
    job: bytes
    claim: bytes = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class FinishJob:
    """`output` is what the kind's `compute` gave, as its type or as that type's JSON."""

    job: bytes
    claim: bytes = field(repr=False)
    #: SHA-256 of the input that it was computed from.
    input_digest: bytes
    output: Any


@dataclass(frozen=True, kw_only=True)
class FailJob:
    job: bytes
    claim: bytes = field(repr=False)
    error: Failure
    permanent: bool = False


@dataclass(frozen=True, kw_only=True)
class ReleaseJob:
    job: bytes
    claim: bytes = field(repr=False)
    reason: Reason
    #: The pause, where the reason's own is not right.
    seconds: float | None = None


@command(ClaimJob, name="claim_job")
def claim(body: ClaimJob, tx: Transaction) -> Answer | Refusal:
    """Answer: `{"job": id or None, "more": bool}`; `more`: another job is due there."""
    open_queues = job_claims.open_queues(tx, body.queues)
    found = _take(tx, body, open_queues)
    more = any(
        job_claims.next_ready(tx, queue, on_data_host=body.on_data_host, kind=body.kind) is not None
        for queue in open_queues
    )
    return {"job": None if found is None else id_text(found.id), "more": more}


@command(RenewJob, name="renew_job")
def renew(body: RenewJob, tx: Transaction) -> Answer | Refusal:
    """Answer: `{"lease_seconds", "cancel": whether to stop}`."""
    job = _leased(tx, body)
    if job is None:
        return _STALE
    renewed = jobs.save(tx, rules.renewed(job, now=tx.now))
    return {"lease_seconds": limits.JOB_LEASE_SECONDS, "cancel": renewed.cancel_asked_at is not None}


@command(FinishJob, name="finish_job")
def finish(body: FinishJob, tx: Transaction) -> Answer | Refusal:
    """The output takes effect and the job ends, or goes on where its kind says so. Answer: `{"state", "more"}`.

    An output that is not of the kind's type, or that the kind refuses, counts as a failure.
    """
    job = _leased(tx, body)
    if job is None:
        return _STALE
    after = jobs.save(tx, _applied(tx, job, body))
    return _ended(tx, after)


@command(FailJob, name="fail_job")
def fail(body: FailJob, tx: Transaction) -> Answer | Refusal:
    """Answer: `{"state", "more", "retry_after"}`, the last None where it is not tried again."""
    job = _leased(tx, body)
    if job is None:
        return _STALE
    after = jobs.save(tx, rules.failed(job, body.error, now=tx.now, is_permanent=body.permanent))
    _log_failure(after)
    return {
        **_ended(tx, after),
        "retry_after": None if after.not_before is None else rfc3339(after.not_before),
    }


@command(ReleaseJob, name="release_job")
def release(body: ReleaseJob, tx: Transaction) -> Answer | Refusal:
    """Answer: `{"state", "more"}`."""
    job = _leased(tx, body)
    if job is None:
        return _STALE
    seconds = body.seconds
    if body.reason is Reason.BUDGET and seconds is None:
        seconds = _budget_seconds(tx, job)
    return _ended(tx, jobs.save(tx, rules.released(job, body.reason, now=tx.now, seconds=seconds)))


def expire_leases(tx: Transaction, limit: int = limits.JOB_EXPIRED_ROWS) -> int:
    """Take jobs from workers that went silent; how many."""
    found = job_claims.expired(tx, tx.now, limit)
    for job_id in found:
        job = jobs.one(tx, job_id)
        if job is not None:
            after = jobs.save(tx, rules.expired(job, now=tx.now))
            logger.warning(
                "a worker went silent with a job",
                extra={"action": "lease_expired", **about(job), "state": after.state.value},
            )
            _log_failure(after)
    return len(found)


def about(job: Job) -> dict[str, Any]:
    """What a log line says of a job."""
    return {"job": id_text(job.id), "kind": job.kind, "worker": job.worker}


def _take(tx: Transaction, body: ClaimJob, queues: list[str]) -> Job | None:
    for queue in queues:
        for _ in range(limits.JOB_PASSED_OVER_PER_CLAIM):
            job_id = job_claims.next_ready(tx, queue, on_data_host=body.on_data_host, kind=body.kind)
            job = None if job_id is None else jobs.one(tx, job_id)
            if job is None:
                break
            if job.kind not in job_kind.kinds:
                _log_failure(jobs.save(tx, rules.given_up(job, Failure.UNKNOWN_KIND, now=tx.now)))
                continue
            busy_until = _busy_until(tx, job)
            if busy_until is not None:
                jobs.save(tx, rules.held_back(job, until=busy_until, now=tx.now))
                continue
            taken = rules.claimed(job, claim_hash=body.claim, worker=body.worker, now=tx.now)
            job_claims.took_turn(tx, taken)
            return jobs.save(tx, taken)
    return None


def _busy_until(tx: Transaction, job: Job) -> int | None:
    """Until when somebody comes first, who works with what the job is about."""
    kind = job_kind.kinds.get(job.kind)
    until = None if kind.busy_until is None else kind.busy_until(tx, job)
    return until if until is not None and until > tx.now else None


def _budget_seconds(tx: Transaction, job: Job) -> float | None:
    """How long the budget stays closed for a job: the next day, or a person, opens it; both wake it at once."""
    is_stopped, until = model_budget.wait_until(tx, job, tx.now)
    if not is_stopped:
        return None
    return limits.JOB_BUDGET_PAUSE_MAX_SECONDS if until is None else (until - tx.now) / MICROSECONDS


def _leased(tx: Transaction, body: RenewJob | FinishJob | FailJob | ReleaseJob) -> Job | None:
    try:
        return rules.check_lease(jobs.one(tx, body.job), body.claim)
    except StaleLease:
        return None


def _applied(tx: Transaction, job: Job, body: FinishJob) -> Job:
    kind = job_kind.kinds.get(job.kind)
    try:
        output = kind.read_output(body.output)
    except Invalid:
        return _refused(job, Failure.OUTPUT, tx.now)
    done = _apply(tx, kind, output, job)
    if isinstance(done, Done):
        result = _bounded(done.result, job)
        return rules.finished(job, Done(result=result), now=tx.now, input_digest=body.input_digest)
    if isinstance(done, Again):
        if _size(done.cursor) > limits.JOB_CURSOR_MAX_BYTES:
            raise StorageFailed(f"{kind.name} leaves a cursor that is too long")
        return rules.again(job, done.cursor, now=tx.now)
    if isinstance(done, Later):
        return rules.released(job, done.reason, now=tx.now)
    is_passing = done.code == "conflict"
    return _refused(
        job, Failure.SOURCE_CHANGED if is_passing else Failure.REFUSED, tx.now, for_good=not is_passing
    )


def _apply(tx: Transaction, kind: JobKind, output: Any, job: Job) -> Applied:
    with tx.on_behalf(job.principal, job.token_scope):
        done = kind.apply(output, job, tx)
    if tx.wrote and isinstance(done, Refusal | Later):
        raise StorageFailed(f"{kind.name} wrote before it said no")
    return done


def _refused(job: Job, failure: Failure, now: int, *, for_good: bool = False) -> Job:
    after = rules.failed(job, failure, now=now, is_permanent=for_good)
    _log_failure(after)
    return after


def _ended(tx: Transaction, job: Job) -> dict[str, Any]:
    is_paused = not job_claims.open_queues(tx, [job.queue])
    # Whether it may have the next one is found when it claims.
    more = not is_paused and job_claims.next_ready(tx, job.queue, on_data_host=True) is not None
    return {"state": job.state.value, "more": more}


def _bounded(result: Mapping[str, Any], job: Job) -> Mapping[str, Any]:
    size = _size(result)
    if size <= limits.JOB_RESULT_MAX_BYTES:
        return result
    logger.error(
        "a job's result is too long and was dropped", extra={"action": "job_result_dropped", **about(job)}
    )
    return {"dropped_bytes": size}


def _size(value: Mapping[str, Any]) -> int:
    return len(rules.as_json(value).encode())


def _log_failure(job: Job) -> None:
    if job.state is rules.State.FAILED:
        logger.error(
            "a job failed for good",
            extra={"action": "job_failed", **about(job), "reason": job.last_error},
        )

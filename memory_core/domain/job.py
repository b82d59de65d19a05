"""Jobs: the states one can be in, the steps between them, and what each step leaves. Drawn in `docs/jobs.md`.

Every step is a function from a job to the next one; a step that does not exist raises `Conflict`. Times are UTC
microseconds. The checks of the table `jobs` say the same once more, so that no other way of writing can break it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

from memory_core import limits
from memory_core.clock import MICROSECONDS
from memory_core.errors import Conflict, StaleLease

#: Each has at least one slot of its own; what waits in one never holds up another.
QUEUES: Final = ("compaction", "distillation", "lint", "forget", "embeddings")


class State(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Move(StrEnum):
    CLAIM = "claim"
    FINISH = "finish"
    #: A slice is done and another one is left.
    AGAIN = "again"
    #: A counted failure that is tried again.
    FAIL = "fail"
    #: The last one that is counted, or one that trying again cannot mend.
    GIVE_UP = "give up"
    #: Handed back uncounted: by its worker, or because the worker died without a sign of life.
    RELEASE = "release"
    CANCEL = "cancel"
    RETRY = "retry"


#: Every step there is; what is not here does not happen.
TRANSITIONS: Final[Mapping[tuple[State, Move], State]] = {
    (State.PENDING, Move.CLAIM): State.RUNNING,
    (State.PENDING, Move.CANCEL): State.CANCELLED,
    (State.PENDING, Move.GIVE_UP): State.FAILED,
    (State.RUNNING, Move.FINISH): State.COMPLETED,
    (State.RUNNING, Move.AGAIN): State.PENDING,
    (State.RUNNING, Move.FAIL): State.PENDING,
    (State.RUNNING, Move.GIVE_UP): State.FAILED,
    (State.RUNNING, Move.RELEASE): State.PENDING,
    (State.RUNNING, Move.CANCEL): State.CANCELLED,
    (State.FAILED, Move.RETRY): State.PENDING,
    #: A person has seen it and leaves it at that.
    (State.FAILED, Move.CANCEL): State.CANCELLED,
    (State.CANCELLED, Move.RETRY): State.PENDING,
}
ENDED: Final = frozenset({State.COMPLETED, State.FAILED, State.CANCELLED})


class Failure(StrEnum):
    """Why a try failed: the code that a worker sends. What is stored and shown is its sentence."""

    LEASE_EXPIRED = "lease_expired"
    WORKER_DIED = "worker_died"
    UNKNOWN_KIND = "unknown_kind"
    INPUT = "input"
    CRASHED = "crashed"
    CHILD_DIED = "child_died"
    TIMED_OUT = "timed_out"
    OUTPUT = "output"
    REFUSED = "refused"
    SOURCE_CHANGED = "source_changed"
    DATA = "data"
    NO_PROVIDER = "no_provider"
    PROVIDER = "provider"
    PROVIDER_REFUSED = "provider_refused"
    ANSWER = "answer"
    TOO_LARGE = "too_large"

    @property
    def sentence(self) -> str:
        return _SENTENCES[self]


_SENTENCES: Final[Mapping[Failure, str]] = {
    Failure.LEASE_EXPIRED: "its lease expired: its worker went silent",
    Failure.WORKER_DIED: "its worker went silent each time before it gave a sign of life",
    Failure.UNKNOWN_KIND: "this version knows no such kind",
    Failure.INPUT: "its input could not be prepared",
    Failure.CRASHED: "its computation raised an error; the worker's log names it",
    Failure.CHILD_DIED: "the process that computed it died",
    Failure.TIMED_OUT: "it ran longer than its kind may and was ended",
    Failure.OUTPUT: "its output was not what its kind promises",
    Failure.REFUSED: "its output was refused",
    Failure.SOURCE_CHANGED: "what it was made of changed meanwhile",
    Failure.DATA: "the data on disk could not be read",
    Failure.NO_PROVIDER: "no model provider is configured",
    Failure.PROVIDER: "the model provider failed",
    Failure.PROVIDER_REFUSED: "the model refused",
    Failure.ANSWER: "the model's answer was not usable",
    Failure.TOO_LARGE: "one call of it may take more than a whole day's budget has",
}


class Reason(StrEnum):
    """Why a worker hands a job back; nothing is counted."""

    STOPPING = "stopping"
    CANCELLED = "cancelled"
    #: Somebody who works now comes first.
    CONTENDED = "contended"
    BUDGET = "budget"
    PROVIDER_BUSY = "provider_busy"

    @property
    def pause_seconds(self) -> float:
        return _PAUSES.get(self, 0.0)

    @property
    def pause_max_seconds(self) -> float:
        """The longest that may be asked for; a budget comes back with the next day."""
        is_budget = self is Reason.BUDGET
        return limits.JOB_BUDGET_PAUSE_MAX_SECONDS if is_budget else limits.JOB_PAUSE_MAX_SECONDS


_PAUSES: Final[Mapping[Reason, float]] = {
    Reason.CONTENDED: limits.JOB_CONTENDED_SECONDS,
    Reason.BUDGET: limits.JOB_BUDGET_SECONDS,
    Reason.PROVIDER_BUSY: limits.JOB_PROVIDER_BUSY_SECONDS,
}
#: What a pending job waits for after a counted failure; else it is a `Reason` or nothing.
RETRY: Final = "retry"


@dataclass(frozen=True, kw_only=True)
class Done:
    """A kind's last word on a job. `result` holds counts and ids, no text; at most `JOB_RESULT_MAX_BYTES` of JSON."""

    result: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, kw_only=True)
class Again:
    """One slice took effect; the job goes on from `cursor`, which its next `prepare` finds in the job."""

    cursor: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Later:
    """Nothing took effect; the same is to be computed again after the pause of `reason`, uncounted."""

    reason: Reason = Reason.CONTENDED


@dataclass(frozen=True, kw_only=True)
class Job:
    """A row of the table `jobs`."""

    id: bytes
    kind: str
    queue: str
    #: None: the whole install.
    project_id: bytes | None = None
    #: What it is about: the id of a session or page as text; empty where the project says it all.
    subject: str = ""
    #: SHA-256 of what it is made from: the same fact makes one job.
    source_digest: bytes
    #: Whether only a worker beside the data directory may have it.
    on_data_host: bool = False
    principal: str
    token_scope: str
    state: State = State.PENDING
    #: Counted failures of this round, and claims that died without a sign of life.
    failures: int = 0
    deaths: int = 0
    #: How often it was claimed, in all.
    claims: int = 0
    #: SHA-256 of the lease token: who shows the token may finish.
    claim_hash: bytes | None = field(default=None, repr=False)
    #: Who has it, or had it last, and since when.
    worker: str | None = None
    claimed_at: int | None = None
    renewed_at: int | None = None
    lease_until: int | None = None
    #: SHA-256 of the input that its output was made from.
    input_digest: bytes | None = None
    #: A pending job that waits: until when, and for what (`retry` or a `Reason`).
    not_before: int | None = None
    waits_for: str | None = None
    last_error: str | None = None
    cancel_asked_at: int | None = None
    cursor: Mapping[str, Any] | None = None
    result: Mapping[str, Any] | None = None
    created_at: int
    updated_at: int
    finished_at: int | None = None

    @property
    def has_ended(self) -> bool:
        return self.state in ENDED


def as_json(value: Mapping[str, Any]) -> str:
    """A result or a cursor as it is stored; its length in UTF-8 is what the limits mean."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def after(state: State, move: Move) -> State | None:
    """The state that a move leads to; None where there is no such step."""
    return TRANSITIONS.get((state, move))


def claimed(job: Job, *, claim_hash: bytes, worker: str, now: int) -> Job:
    moved = _moved(job, Move.CLAIM, now)
    return replace(
        moved,
        claims=job.claims + 1,
        claim_hash=claim_hash,
        worker=worker,
        claimed_at=now,
        lease_until=now + _LEASE_US,
    )


def renewed(job: Job, *, now: int) -> Job:
    """The lease lasts anew, also when it was over and nobody had noticed."""
    _check_running(job)
    return replace(job, renewed_at=now, lease_until=now + _LEASE_US, updated_at=now)


def finished(job: Job, done: Done, *, now: int, input_digest: bytes | None = None) -> Job:
    """Completed: what it did took effect, whatever was asked meanwhile."""
    return replace(
        _moved(job, Move.FINISH, now),
        last_error=None,
        result=done.result,
        input_digest=input_digest,
        finished_at=now,
    )


def again(job: Job, cursor: Mapping[str, Any], *, now: int) -> Job:
    """Pending at once with its cursor; cancelled if that was asked."""
    moved = _cancelled_if_asked(job, now) or _moved(job, Move.AGAIN, now)
    return replace(moved, cursor=cursor)


def failed(job: Job, failure: Failure, *, now: int, is_permanent: bool = False) -> Job:
    """Counted: tried again after 30 s, doubling to 5 min, or given up with the third one and with a permanent one."""
    if (stopped := _cancelled_if_asked(job, now)) is not None:
        return stopped
    failures = job.failures + 1
    is_last = is_permanent or failures >= limits.JOB_FAILURES_MAX
    moved = replace(
        _moved(job, Move.GIVE_UP if is_last else Move.FAIL, now),
        failures=failures,
        last_error=failure.sentence,
    )
    if is_last:
        return replace(moved, finished_at=now)
    return replace(moved, not_before=now + _microseconds(backoff_seconds(failures)), waits_for=RETRY)


def released(job: Job, reason: Reason, *, now: int, seconds: float | None = None) -> Job:
    """Pending again, uncounted; with a pause of `seconds`, or of the reason's own. Cancelled if that was asked."""
    if (stopped := _cancelled_if_asked(job, now)) is not None:
        return stopped
    moved = _moved(job, Move.RELEASE, now)
    pause = reason.pause_seconds if seconds is None else min(max(seconds, 0.0), reason.pause_max_seconds)
    if not pause or reason in (Reason.STOPPING, Reason.CANCELLED):
        return moved
    return replace(moved, not_before=now + _microseconds(pause), waits_for=reason.value)


def held_back(job: Job, *, until: int, now: int) -> Job:
    """A pending job that is not given yet, because somebody works with what it is about until then; looked at again sooner, for
    they may be done before."""
    if job.state is not State.PENDING:
        raise Conflict(f"the job is {job.state.value} and waits for nobody")
    latest = now + _microseconds(Reason.CONTENDED.pause_seconds)
    return replace(job, not_before=min(until, latest), waits_for=Reason.CONTENDED.value, updated_at=now)


def expired(job: Job, *, now: int) -> Job:
    """Its lease is over. A claim that died without a sign of life says nothing about the job, twice."""
    _check_running(job)
    if (stopped := _cancelled_if_asked(job, now)) is not None:
        return stopped
    if job.renewed_at is not None:
        return failed(job, Failure.LEASE_EXPIRED, now=now)
    if job.deaths >= limits.JOB_DEATHS_UNCOUNTED:
        return failed(job, Failure.WORKER_DIED, now=now)
    return replace(_moved(job, Move.RELEASE, now), deaths=job.deaths + 1)


def cancelled(job: Job, *, now: int) -> Job:
    """A pending one ends at once; a running one is asked to, which its worker hears of at its next sign of life. A failed one
    keeps the time of its end."""
    if job.state is State.RUNNING:
        return replace(job, cancel_asked_at=job.cancel_asked_at or now, updated_at=now)
    return replace(_moved(job, Move.CANCEL, now), finished_at=job.finished_at or now)


def given_up(job: Job, failure: Failure, *, now: int) -> Job:
    """A pending job that nobody can do."""
    moved = _moved(job, Move.GIVE_UP, now)
    return replace(moved, failures=job.failures + 1, last_error=failure.sentence, finished_at=now)


def retried(job: Job, *, now: int) -> Job:
    """By a person: pending as new, with its identity and its cursor."""
    moved = _moved(job, Move.RETRY, now)
    return replace(moved, failures=0, deaths=0, last_error=None, finished_at=None, cancel_asked_at=None)


def check_lease(job: Job | None, claim_hash: bytes) -> Job:
    """The job, if the lease is still that of its claim, in time or not. Raises `StaleLease`."""
    if job is None or job.state is not State.RUNNING or job.claim_hash != claim_hash:
        raise StaleLease
    return job


def backoff_seconds(failures: int) -> float:
    """The pause after the n-th counted failure: 30 s · 2^(n-1), at most 5 minutes."""
    return min(limits.JOB_BACKOFF_SECONDS * 2 ** (failures - 1), limits.JOB_BACKOFF_MAX_SECONDS)


def _microseconds(seconds: float) -> int:
    return round(seconds * MICROSECONDS)


_LEASE_US: Final = _microseconds(limits.JOB_LEASE_SECONDS)


def _moved(job: Job, move: Move, now: int) -> Job:
    """The job in its next state, without what only the old one had: a claim, a pause, a wish to cancel."""
    state = after(job.state, move)
    if state is None:
        raise Conflict(f"the job is {job.state.value}; {move.value} is not possible then")
    return replace(
        job,
        state=state,
        updated_at=now,
        claim_hash=None,
        renewed_at=None,
        lease_until=None,
        not_before=None,
        waits_for=None,
        cancel_asked_at=job.cancel_asked_at if state is State.CANCELLED else None,
    )


def _cancelled_if_asked(job: Job, now: int) -> Job | None:
    if job.cancel_asked_at is None:
        return None
    return replace(_moved(job, Move.CANCEL, now), finished_at=now)


def _check_running(job: Job) -> None:
    if job.state is not State.RUNNING:
        raise Conflict(f"the job is {job.state.value} and has no lease")

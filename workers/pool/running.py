"""One job from its claim to its end: computed where it can be stopped, kept alive by renewals, reported once."""

from __future__ import annotations

import logging
import queue
import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

import msgspec

from memory_core import limits
from memory_core.clock import Clock
from memory_core.config import Settings
from memory_core.domain.job import Failure, Reason
from memory_core.errors import Conflict, CoreError, Invalid, StaleLease, Unavailable
from workers.pool import frames
from workers.pool.claiming import Claim, ClaimedJob
from workers.pool.computing import ending_of, run_kind
from workers.pool.gate import Pause, PoolGate, new_key
from workers.pool.killable import ComputeChild, Died
from workers.pool.tools import InlineTools

logger = logging.getLogger(__name__)


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """The answers of finish, fail and release."""

    state: str
    more: bool = False


class Sign(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `/pool/renew`."""

    cancel: bool = False


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How often and how long; tests are quicker."""

    renew_seconds: float = limits.JOB_RENEW_SECONDS
    renew_again_seconds: float = limits.POOL_RENEW_AGAIN_SECONDS
    cancel_seconds: float = limits.POOL_CANCEL_SECONDS
    claim_seconds: float = limits.POOL_CLAIM_SECONDS
    finish_seconds: float = limits.POOL_FINISH_SECONDS


@dataclass(frozen=True, kw_only=True)
class Report:
    """What a look at a queue came to, as Flower shows it. `outcome`: the job's new state, or why there is none."""

    outcome: str
    job: str = ""
    kind: str = ""
    more: bool = False

    def shown(self) -> dict[str, str]:
        return {"job": self.job, "kind": self.kind, "outcome": self.outcome}


class _Signal(Enum):
    CANCEL = auto()
    LOST = auto()
    STOP = auto()


@dataclass(frozen=True, kw_only=True)
class _Ending:
    """How a run ends: `action` is finish, fail or release; `lost` says nothing to anybody."""

    action: str
    body: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)


_LOST = _Ending(action="lost")


class Run:
    """One claimed job in one slot. `work` is called once, by the slot's thread; `stop` may come from any."""

    def __init__(
        self,
        job: ClaimedJob,
        claim: Claim,
        lease: str,
        *,
        gate: PoolGate,
        child: ComputeChild,
        clock: Clock,
        pace: Pace,
        pause: Pause,
        data: Settings | None,
    ) -> None:
        self.job = job
        #: The monotonic second by which this run must have got somewhere; later its slot hangs.
        self.busy_until = clock.monotonic() + self.job.run_seconds + limits.POOL_OVERTIME_SECONDS
        self._claim = claim
        self._lease = lease
        self._gate = gate
        self._child = child
        self._clock = clock
        self._pace = pace
        self._pause = pause
        self._data = data
        self._number = secrets.randbits(48)
        self._events: queue.SimpleQueue[object] = queue.SimpleQueue()
        self._told: set[_Signal] = set()
        self._unwanted = threading.Event()
        self._over = threading.Event()
        #: The child read the work; until then a child that dies may be replaced, once.
        self._has_begun = False
        self._may_replace_child = True

    def stop(self) -> None:
        """Hand the job back, uncounted, as soon as can be."""
        self._tell(_Signal.STOP)

    def work(self) -> Report:
        """Compute, and tell the gate. Raises nothing for what can go wrong with a job or with the gate."""
        renewing = threading.Thread(target=self._renew, name=f"renew-{self.job.id}", daemon=True)
        renewing.start()
        try:
            ending = self._inline() if self.job.is_inline else self._in_child()
            self.busy_until = (
                self._clock.monotonic() + self._pace.finish_seconds + limits.POOL_OVERTIME_SECONDS
            )
            return self._report(ending)
        finally:
            self._over.set()

    # --- computing ---

    def _inline(self) -> _Ending:
        try:
            output = run_kind(
                self.job.kind,
                bytes(self._claim.input),
                lambda reads: InlineTools(self._unwanted, self._data if reads else None),
            )
        except Exception as error:  # whatever a kind raises ends its job, not the worker
            return self._unless_unwanted(self._ending_of(ending_of(error, self._number)))
        return self._unless_unwanted(self._finish(output))

    def _in_child(self) -> _Ending:
        if (unstarted := self._begin()) is not None:
            return unstarted
        end = self._clock.monotonic() + self.job.run_seconds
        kill_at: float | None = None
        while True:
            until = end if kill_at is None else min(end, kill_at)
            event = self._next_event(until)
            if event is None:
                self._child.end()
                logger.warning(
                    "a job was ended: %s",
                    "it ran too long" if kill_at is None else "it did not stop when it was cancelled",
                    extra={"action": "compute_killed", **self._context()},
                )
                return _fail(Failure.TIMED_OUT) if kill_at is None else _release(Reason.CANCELLED)
            if event is _Signal.CANCEL:
                self._child.tell(frames.Cancel(number=self._number))
                kill_at = kill_at or self._clock.monotonic() + self._pace.cancel_seconds
            elif (ending := self._heard(event)) is not None:
                return self._unless_unwanted(ending)

    def _begin(self) -> _Ending | None:
        """Give the work to the child; how the job ends where there can be none."""
        work = frames.Work(number=self._number, kind=self.job.kind, input=bytes(self._claim.input))
        try:
            self._child.begin(work, self._events.put)
        except OSError as error:
            logger.error(
                "no compute child can be started: %s", error.strerror, extra={"action": "compute_unstarted"}
            )
            return _release(Reason.CONTENDED)
        return None

    def _next_event(self, until: float) -> object | None:
        """What happened next; None when the time is over and there is no result."""
        left = until - self._clock.monotonic()
        try:
            if left > 0:
                return self._events.get(timeout=left)
            # This process may have been stopped meanwhile; what came in time counts.
            while not isinstance(event := self._events.get_nowait(), frames.Done | frames.Failed):
                pass
            return event
        except queue.Empty:
            return None

    def _heard(self, event: object) -> _Ending | None:
        """What an event means for the job; None while it goes on."""
        if event is _Signal.LOST or event is _Signal.STOP:
            self._child.end()
            return _LOST if event is _Signal.LOST else _release(Reason.STOPPING)
        if isinstance(event, Died):
            return self._died()
        if isinstance(event, frames.Ask):
            threading.Thread(target=self._ask, args=(event,), name="ask", daemon=True).start()
        elif isinstance(event, frames.Reply):
            self._child.tell(event)
        elif (
            isinstance(event, frames.Begun | frames.Done | frames.Failed | frames.Progress)
            and event.number == self._number
        ):
            if isinstance(event, frames.Begun):
                self._has_begun = True
                return None
            if isinstance(event, frames.Done):
                return self._finish(event.output)
            if isinstance(event, frames.Failed):
                return self._ending_of(event)
            logger.info("%s", event.text, extra={"action": "job_progress", **self._context()})
        return None

    def _died(self) -> _Ending | None:
        """A child may die while it lies idle, unseen until the next work is given to it: that is no failure of this job.
        A second one that does not even begin may well be: by an input that no child can read."""
        logger.warning("a compute child died", extra={"action": "compute_died", **self._context()})
        if self._has_begun or self._told or not self._may_replace_child:
            return _fail(Failure.CHILD_DIED)
        self._may_replace_child = False
        return self._begin()

    def _unless_unwanted(self, ending: _Ending) -> _Ending:
        """A kind that was told to stop may end in any way; half a result must not take effect."""
        if _Signal.LOST in self._told:
            return _LOST
        return _release(Reason.CANCELLED) if _Signal.CANCEL in self._told else ending

    def _ask(self, ask: frames.Ask) -> None:
        """For the child: the lease stays here."""
        try:
            value = self._gate.insist(
                ask.path,
                {**ask.body, **self._named()},
                key=ask.key,
                seconds=limits.POOL_ASK_SECONDS / 2,
                pause=self._pause,
            )
        except StaleLease:
            self._tell(_Signal.LOST)
            return
        except CoreError as error:
            self._events.put(frames.Reply(number=ask.number, value={}, error=error.code))
            return
        if value.get("cancel"):
            self._tell(_Signal.CANCEL)
        self._events.put(frames.Reply(number=ask.number, value=value))

    def _ending_of(self, failed: frames.Failed) -> _Ending:
        if failed.ending == "release":
            return _release(Reason(failed.code))
        logger.error(
            "a job's computation failed: %s",
            Failure(failed.code).sentence,
            extra={
                "action": "compute_failed",
                **self._context(),
                **({"exception": failed.exception} if failed.exception else {}),
            },
        )
        return _fail(Failure(failed.code), is_permanent=failed.is_permanent)

    # --- staying alive ---

    def _renew(self) -> None:
        wait = self._pace.renew_seconds
        # A kind that runs in this thread cannot be killed: without a sign of life its lease ends for it.
        end = self._clock.monotonic() + self.job.run_seconds if self.job.is_inline else None
        while not self._over.wait(wait) and (end is None or self._clock.monotonic() < end):
            wait = self._pace.renew_again_seconds
            try:
                sign = self._gate.ask("/pool/renew", self._named(), key=new_key(), type=Sign)
            except StaleLease:
                logger.warning("a lease is lost", extra={"action": "lease_lost", **self._context()})
                self._tell(_Signal.LOST)
                return
            except CoreError as error:
                logger.warning(
                    "a sign of life did not get through (%s)",
                    error.code,
                    extra={"action": "renew_failed", **self._context()},
                )
                continue
            wait = self._pace.renew_seconds
            if sign.cancel:
                self._tell(_Signal.CANCEL)

    def _tell(self, signal: _Signal) -> None:
        self._told.add(signal)
        self._unwanted.set()
        self._events.put(signal)

    # --- the end ---

    def _finish(self, output: bytes) -> _Ending:
        return _Ending(
            action="finish", body={"input_digest": self._claim.input_digest, "output": msgspec.Raw(output)}
        )

    def _report(self, ending: _Ending) -> Report:
        if ending.action == "lost":
            return self._as("lost")
        try:
            ended = self._gate.insist(
                f"/pool/{ending.action}",
                {**ending.body, **self._named()},
                seconds=self._pace.finish_seconds,
                pause=self._pause,
                type=Ended,
            )
        except StaleLease:
            logger.warning("a result came too late", extra={"action": "lease_lost", **self._context()})
            return self._as("lost")
        except Unavailable:
            logger.error(
                "the gate could not be told how a job ended",
                extra={"action": "job_unreported", **self._context()},
            )
            return self._as("unreported")
        except (Conflict, Invalid) as error:
            logger.error(
                "the gate does not take how a job ended: %s",
                error,
                extra={"action": "job_unreported", **self._context()},
            )
            if ending.action != "finish":
                return self._as("refused")
            # What it refuses of a result, it may take as a failure: then the job ends by its tries.
            return self._report(_fail(Failure.REFUSED if isinstance(error, Conflict) else Failure.OUTPUT))
        except CoreError as error:
            logger.error(
                "the gate does not let this worker in: %s", error, extra={"action": "pool_forbidden"}
            )
            return self._as("forbidden")
        logger.info("a job ended", extra={"action": "job_ended", "state": ended.state, **self._context()})
        return self._as(ended.state, more=ended.more)

    def _as(self, outcome: str, *, more: bool = False) -> Report:
        return Report(outcome=outcome, job=self.job.id, kind=self.job.kind, more=more or self._claim.more)

    def _named(self) -> dict[str, Any]:
        return {"job": self.job.id, "lease": self._lease}

    def _context(self) -> dict[str, Any]:
        return {
            "job": self.job.id,
            "kind": self.job.kind,
            "queue": self.job.queue,
            "attempt": self.job.attempt,
        }


def _fail(failure: Failure, *, is_permanent: bool = False) -> _Ending:
    return _Ending(action="fail", body={"error": failure.value, "permanent": is_permanent})


def _release(reason: Reason) -> _Ending:
    return _Ending(action="release", body={"reason": reason.value})

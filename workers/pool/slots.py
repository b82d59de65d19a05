"""The slots of one queue. A look takes a free slot and works through one job; a look that finds none leaves a note.

Whoever ends a job and finds the note, or was told that more waits, rings the queue: the next job then is a task
of its own, here or in another worker. Where ringing fails it simply goes on.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from memory_core import limits
from memory_core.clock import Clock
from memory_core.errors import CoreError, StaleLease, Unavailable
from workers.pool.claiming import Claim, ClaimedJob
from workers.pool.killable import ComputeChild
from workers.pool.running import Report, Run

logger = logging.getLogger(__name__)

BUSY = Report(outcome="busy")
STOPPING = Report(outcome="stopping")
AWAY = Report(outcome="gate away")

#: Asks for a job of one queue: the claim and its lease. Raises what `PoolGate.insist` does.
ClaimNext = Callable[[], tuple[Claim, str]]
#: Makes a run of a claim, in a child.
MakeRun = Callable[[ClaimedJob, Claim, str, ComputeChild], Run]


class _Slot:
    def __init__(self, child: ComputeChild) -> None:
        self.child = child
        self.run: Run | None = None
        #: While it claims: the monotonic second by which it must have got an answer.
        self.until = 0.0

    @property
    def busy_until(self) -> float:
        return self.run.busy_until if self.run is not None else self.until


class Slots:
    """All slots of one queue in one worker. `look` may be called from any thread, many times at once."""

    def __init__(
        self,
        queue: str,
        children: Sequence[ComputeChild],
        *,
        claim_next: ClaimNext,
        make_run: MakeRun,
        ring: Callable[[], None],
        ring_now: Callable[[], bool],
        closing: threading.Event,
        clock: Clock,
    ) -> None:
        """`ring` tells others without waiting; `ring_now` says whether the bell was taken."""
        self.queue = queue
        self.count = len(children)
        self._free = [_Slot(child) for child in children]
        self._busy: set[_Slot] = set()
        self._claim_next = claim_next
        self._make_run = make_run
        self._ring = ring
        self._ring_now = ring_now
        self._closing = closing
        self._clock = clock
        self._changed = threading.Condition()
        self._again = False
        self._is_let_in = True
        self._looked_at = clock.monotonic()

    def look(self) -> Report:
        """Do the next job, if there is one and a slot for it. Waits for no slot. Raises nothing that is expected."""
        report = BUSY
        while (slot := self._take()) is not None:
            is_wanted = False
            try:
                report = self._one(slot)
            finally:
                is_wanted = self._give_back(slot)
            if report is AWAY or not (report.more or is_wanted) or self._ring_now():
                return report
        return STOPPING if report is BUSY and self._closing.is_set() else report

    def look_if_idle(self, idle_seconds: float) -> None:
        """Look if nobody did for so long."""
        with self._changed:
            is_due = self._clock.monotonic() - self._looked_at >= idle_seconds
        if is_due:
            self.look()

    def rest(self, idle_seconds: float) -> None:
        """End the compute children that had nothing to do for so long."""
        with self._changed:
            for slot in self._free:
                slot.child.rest(idle_seconds)

    @property
    def is_busy(self) -> bool:
        with self._changed:
            return bool(self._busy)

    @property
    def is_overdue(self) -> bool:
        """Whether a slot got nowhere within all the time that its job may take: it hangs."""
        now = self._clock.monotonic()
        with self._changed:
            return any(slot.busy_until < now for slot in self._busy)

    def stop(self) -> None:
        """Hand back what runs. `closing` must be set before: then nothing new begins."""
        with self._changed:
            runs = [slot.run for slot in self._busy if slot.run is not None]
        for run in runs:
            run.stop()

    def wait_idle(self, seconds: float) -> bool:
        """Until nothing runs any more; False when it took longer."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._busy, seconds)

    def kill_children(self) -> None:
        with self._changed:
            for slot in (*self._free, *self._busy):
                slot.child.kill()

    def _take(self) -> _Slot | None:
        with self._changed:
            self._looked_at = self._clock.monotonic()
            if self._closing.is_set():
                return None
            if not self._free:
                self._again = True
                return None
            slot = self._free.pop()
            slot.until = self._looked_at + limits.POOL_CLAIM_SECONDS + limits.POOL_OVERTIME_SECONDS
            self._busy.add(slot)
            # From here on a look that comes finds this one on its way, or leaves its note for it.
            self._again = False
            return slot

    def _give_back(self, slot: _Slot) -> bool:
        """Whether somebody looked in vain meanwhile."""
        slot.child.lay_down()
        with self._changed:
            slot.run = None
            self._busy.discard(slot)
            self._free.append(slot)
            self._changed.notify_all()
            was_wanted, self._again = self._again, False
            return was_wanted

    def _one(self, slot: _Slot) -> Report:
        try:
            claim, lease = self._claim_next()
        except Unavailable:
            self._say_away()
            return AWAY
        except StaleLease:
            return AWAY  # the answer came so late that the lease was over
        except CoreError as error:
            self._say_refused(error)
            return AWAY
        self._is_let_in = True
        if claim.job is None:
            return Report(outcome="nothing", more=claim.more)
        if claim.more:
            self._ring()
        run = self._make_run(claim.job, claim, lease, slot.child)
        with self._changed:
            slot.run = run
        if self._closing.is_set():
            run.stop()
        return run.work()

    def _say_away(self) -> None:
        if not self._closing.is_set():
            logger.warning(
                "the gate cannot be asked for jobs", extra={"action": "gate_away", "queue": self.queue}
            )

    def _say_refused(self, error: CoreError) -> None:
        """Once until it changes: beat rings all the time."""
        if self._is_let_in:
            logger.error(
                "the gate does not let this worker in: %s",
                error,
                extra={"action": "pool_forbidden", "queue": self.queue},
            )
        self._is_let_in = False

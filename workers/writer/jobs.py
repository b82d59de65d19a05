"""The writer's duties about jobs: leases that are over, pauses that are over, and slots of schedules that are due.

Who rings, how often, and how many do, changes nothing: what is due is found here, by the tables and the clocks.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from memory_core import limits
from memory_core.clock import MICROSECONDS, Clock, rfc3339
from memory_core.commands.job_control import stage
from memory_core.commands.jobs import expire_leases
from memory_core.domain.schedule import Schedule
from memory_core.job_kind import JobKind, kinds
from memory_core.store import job_claims, jobs, schedule_slots
from memory_core.store.transaction import Transaction
from workers.writer.duties import Duty

logger = logging.getLogger(__name__)

_LEASE_US = round(limits.JOB_LEASE_SECONDS * MICROSECONDS)
_DAY_US = 24 * 3600 * MICROSECONDS


def duties(schedules: Mapping[str, Schedule | None], clock: Clock) -> tuple[Duty, ...]:
    """All of them; they remember in memory only what the tables would say again."""
    leases, stager = Leases(clock), Stager(schedules)
    return (
        Duty(name="expire_leases", work=leases.expire, every_seconds=limits.DUTY_SECONDS),
        Duty(
            name="wake_jobs",
            work=lambda tx: job_claims.wake(tx, limits.JOB_EXPIRED_ROWS),
            every_seconds=limits.DUTY_SECONDS,
        ),
        Duty(name="stage_schedules", work=stager.stage, every_seconds=limits.DUTY_SECONDS),
        Duty(name="tidy_jobs", work=_tidy, every_seconds=limits.PURGE_SECONDS),
    )


class Leases:
    """Lets leases expire, but not by a clock that was just set, and not before workers could renew them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        #: Wall clock minus monotonic clock, seconds: what a step of the wall clock changes.
        self._offset = self._measured()
        self._resumes_at = clock.monotonic() + limits.JOB_START_GRACE_SECONDS

    def expire(self, tx: Transaction) -> int:
        """One turn; how many leases it found expired."""
        offset = self._measured()
        if abs(offset - self._offset) > limits.JOB_CLOCK_STEP_SECONDS:
            self._clock_stepped(tx, offset - self._offset)
            self._offset = offset
        if self._clock.monotonic() < self._resumes_at:
            # Each time, for the transaction in which the step was seen may have failed.
            _shorten(tx, limits.JOB_PAUSE_MAX_SECONDS)
            return 0
        return expire_leases(tx)

    def _clock_stepped(self, tx: Transaction, seconds: float) -> None:
        """Every lease lasts a whole time anew: by which clock it was made nobody knows."""
        self._resumes_at = self._clock.monotonic() + limits.JOB_LEASE_SECONDS
        job_claims.begin_leases_anew(tx, tx.now + _LEASE_US)
        _shorten(tx, limits.JOB_BACKOFF_MAX_SECONDS)
        logger.warning(
            "the wall clock was set; no lease expires for the time of one lease",
            extra={"action": "clock_stepped", "seconds": round(seconds)},
        )

    def _measured(self) -> float:
        return self._clock.now_us() / MICROSECONDS - self._clock.monotonic()


class Stager:
    """Makes a job of each schedule's current slot, once. What was missed meanwhile is not made up for: the latest counts."""

    def __init__(self, schedules: Mapping[str, Schedule | None]) -> None:
        self._schedules = {name: schedule for name, schedule in schedules.items() if schedule is not None}
        #: Of each kind the slot that the tables were seen to have whole.
        self._whole: dict[str, int] = {}
        #: Of each kind the current slot and the next one, so that a cron expression is not worked out each second.
        self._slots: dict[str, tuple[int, int]] = {}

    def stage(self, tx: Transaction) -> int:
        """One turn; how many slots were staged."""
        return sum(self._stage_kind(tx, kinds.get(name), self._schedules[name]) for name in self._schedules)

    def _stage_kind(self, tx: Transaction, kind: JobKind, schedule: Schedule) -> int:
        slot = self._current(kind.name, schedule, tx.now)
        if slot is None or self._whole.get(kind.name) == slot:
            return 0
        text = rfc3339(slot)
        if not schedule_slots.is_known(tx, kind.name):
            # A schedule that was never seen has missed nothing: it begins with the next slot.
            schedule_slots.add(tx, kind=kind.name, project_id=None, slot=text, job_id=None)
            return 0
        staged = self._stage_scopes(tx, kind, text)
        if not staged:
            # Only what was found without writing is certain: a transaction may yet fail.
            self._whole[kind.name] = slot
        return staged

    def _stage_scopes(self, tx: Transaction, kind: JobKind, slot: str) -> int:
        if kind.per == "install":
            scopes = (
                [None] if not schedule_slots.is_staged(tx, kind=kind.name, project_id=None, slot=slot) else []
            )
        else:
            scopes = schedule_slots.active_projects(
                tx, kind=kind.name, slot=slot, limit=limits.SCHEDULE_PROJECTS
            )
        for project_id in scopes:
            self._stage_one(tx, kind, slot, project_id)
        return len(scopes)

    def _stage_one(self, tx: Transaction, kind: JobKind, slot: str, project_id: bytes | None) -> None:
        waiting = jobs.pending_like(tx, queue=kind.queue, kind=kind.name, project_id=project_id)
        if waiting is None:
            stage(tx, kind, slot=slot, project_id=project_id)
        else:
            # It has not begun and will see all that this one would.
            schedule_slots.add(tx, kind=kind.name, project_id=project_id, slot=slot, job_id=waiting)

    def _current(self, name: str, schedule: Schedule, now: int) -> int | None:
        slot, following = self._slots.get(name, (1, 0))
        if not slot <= now < following:
            found = schedule.slot(now)
            if found is None:
                return None
            slot, following = found, schedule.next_slot(now) or now
            self._slots[name] = slot, following
        return slot


def _shorten(tx: Transaction, pause_seconds: float) -> None:
    """No lease is longer than a lease, no pause longer than `pause_seconds`."""
    job_claims.shorten(
        tx, lease_until=tx.now + _LEASE_US, not_before=tx.now + round(pause_seconds * MICROSECONDS)
    )


def _tidy(tx: Transaction) -> int:
    before = tx.now - limits.SCHEDULE_SLOT_DAYS * _DAY_US
    return schedule_slots.purge(tx, before=before, slice_rows=limits.DUTY_ROWS) + job_claims.forget_turns(
        tx, limits.DUTY_ROWS
    )

"""What the writer does of its own accord, between batches: each duty small, bounded, and in its own transaction."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memory_core import commands, limits
from memory_core.clock import Clock
from memory_core.errors import NotAlone, StorageStopped
from memory_core.store import command_ids, letters
from memory_core.store.letters import Letter
from memory_core.store.transaction import Transaction
from workers.writer.engine import Engine, Stopping
from workers.writer.mark import key_of
from workers.writer.report import BatchReport

logger = logging.getLogger(__name__)

#: A duty's own work in one transaction; how many rows it touched.
Work = Callable[[Transaction], int]


@dataclass(frozen=True, kw_only=True)
class Duty:
    name: str
    work: Work
    #: Not more often than that.
    every_seconds: float


class Duties:
    """Runs what is due. A duty that fails is logged and tried at its next turn: it must not stop the commands."""

    def __init__(self, engine: Engine, clock: Clock, duties: Sequence[Duty]) -> None:
        self._engine = engine
        self._clock = clock
        self._duties = (
            *duties,
            Duty(
                name="purge_command_ids",
                work=lambda tx: command_ids.purge(tx, limits.DUTY_ROWS),
                every_seconds=limits.PURGE_SECONDS,
            ),
        )
        self._due: dict[str, float] = {}

    def run(self, report: BatchReport) -> None:
        """All that is due; promises of files and doorbells go into `report`. Raises `NotAlone` and `StorageStopped`."""
        now = self._clock.monotonic()
        for duty in self._duties:
            if self._due.get(duty.name, 0.0) > now:
                continue
            self._due[duty.name] = now + duty.every_seconds
            try:
                touched = self._engine.originate(duty.work, report)
            except (NotAlone, StorageStopped, Stopping):
                raise
            except Exception:
                logger.exception("a duty failed", extra={"action": "duty_failed", "duty": duty.name})
                continue
            if touched:
                logger.info(
                    "a duty was done", extra={"action": "duty_done", "duty": duty.name, "rows": touched}
                )

    def retry_parked(self, report: BatchReport, *, is_idle: bool) -> None:
        """Apply what somebody asked to try again; when nothing else waits, also what died each time."""
        self._apply(letters.RETRY, report)
        if is_idle:
            self._apply(letters.DIED, report)

    def at_start(self, report: BatchReport) -> None:
        """Before the first command: what died at its last chance is dead, and what is known by now is applied."""
        tries = self._engine.mark.last.tries
        if tries is not None and tries.deaths > limits.CAREFUL_TRIES:
            died = self._engine.read(lambda tx: letters.parked_for(tx, letters.DIED, count=limits.DUTY_ROWS))
            self._take(
                self._engine.apply_parked([x for x in died if key_of(x.envelope) == tries.key]), report
            )
        after = 0
        while some := self._unknown(after):
            after = some[-1].seq
            self._take(
                self._engine.apply_parked([x for x in some if x.envelope.name in commands.registry]), report
            )

    def _unknown(self, after: int) -> list[Letter]:
        found = self._engine.read(lambda tx: letters.parked(tx, after=after, count=limits.PARKED_PER_DUTY))
        return [letter for letter in found if letter.reason != letters.DIED]

    def _apply(self, reason: str, report: BatchReport) -> None:
        some = self._engine.read(lambda tx: letters.parked_for(tx, reason, count=limits.PARKED_PER_DUTY))
        if some:
            self._take(self._engine.apply_parked(some), report)

    def _take(self, done: BatchReport, report: BatchReport) -> None:
        report.outcomes += done.outcomes
        report.rings |= done.rings
        report.files |= done.files
        if done.stopped is not None:
            raise done.stopped
        if done.interrupted:
            raise Stopping

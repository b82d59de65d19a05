"""The writer's engine: commands in, one transaction per batch, over a database connection and nothing else.

There are no savepoints: when the disk is full SQLite rolls the whole transaction back, and what would run
after that would run outside of any. A batch is applied whole or not at all; after any exception its
commands are applied again one by one, in order (careful mode).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from memory_core import limits
from memory_core.clock import Clock
from memory_core.domain.command import Envelope
from memory_core.errors import NotAlone, StorageFailed, StorageStopped
from memory_core.ids import IdSource
from memory_core.store import command_ids, letters
from memory_core.store.install import epoch_of
from memory_core.store.letters import Letter
from memory_core.store.transaction import Look, Transaction
from memory_core.store.writing import WriterConnection
from workers.writer.applying import apply_one, describe, settled
from workers.writer.mark import MarkFile, Tries, key_of
from workers.writer.report import BatchReport, Fate, Outcome

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Stopping(Exception):
    """Raised by a pause when the process is to end."""


class Engine:
    """Used by one thread at a time. `pause(seconds)` waits between tries and may raise `Stopping`; `obstacle` is for the commands."""

    def __init__(
        self,
        connection: WriterConnection,
        *,
        epoch: int,
        ids: IdSource,
        clock: Clock,
        mark: MarkFile,
        pause: Callable[[float], None] | None = None,
        obstacle: Look = lambda _file: None,
    ) -> None:
        self.connection = connection
        self._epoch = epoch
        self._ids = ids
        self._clock = clock
        self._obstacle = obstacle
        self.mark = mark
        self._pause = pause or clock.sleep
        #: What went wrong the last time with the command that is tried alone.
        self._last_error = "it was tried by a process that ended"

    def apply_batch(
        self, envelopes: Sequence[Envelope], *, until: str = "", careful: bool = False
    ) -> BatchReport:
        """Apply commands in their order; what the report holds is committed and synced.

        `until` names the last of them in the stream, for the next process to read should this one die.
        `careful` begins one by one. Raises only `NotAlone`: another writer owns the database, nothing
        was written and nothing may be.
        """
        report, began = BatchReport(), self._clock.monotonic()
        try:
            if not careful:
                self.mark.batch(until)
                careful = not self._try_whole(envelopes, report)
            if careful:
                report.was_careful = True
                for envelope in envelopes:
                    self._alone(envelope, report)
        except StorageStopped as error:
            report.stopped = error
        except Stopping:
            report.interrupted = True
        report.seconds = self._clock.monotonic() - began
        return report

    def apply_parked(self, parked: Sequence[Letter]) -> BatchReport:
        """Apply parked commands one by one, as new; those that are still unknown stay."""
        report = BatchReport(was_careful=True)
        try:
            for letter in parked:
                # What died each time has one chance left; its deaths are not on the mark any more.
                deaths = limits.CAREFUL_TRIES if letter.reason == letters.DIED else 0
                self._alone(letter.envelope, report, from_parked=True, deaths=deaths)
        except StorageStopped as error:
            report.stopped = error
        except Stopping:
            report.interrupted = True
        return report

    def originate(self, work: Callable[[Transaction], T], report: BatchReport | None = None) -> T:
        """Work of the writer's own in one transaction; what it promises (files, doorbells) goes into `report`.

        Raises what `work` raises, `StorageStopped`, or `NotAlone`; nothing is kept then.
        """

        def run(tx: Transaction) -> T:
            tx.now = self._clock.now_us()
            return work(tx)

        return self._transact(run, report or BatchReport())

    def read(self, question: Callable[[Transaction], T]) -> T:
        """Ask the database outside of a transaction; `question` must not write."""
        return question(Transaction(self.connection.raw, self._ids))

    def _try_whole(self, envelopes: Sequence[Envelope], report: BatchReport) -> bool:
        try:
            outcomes = self._transact(lambda tx: self._apply_all(tx, envelopes), report)
        except (StorageStopped, NotAlone, Stopping):
            raise
        except Exception as error:
            logger.warning(
                "a batch failed and is applied again one by one: %s",
                describe(error),
                extra={"action": "careful_mode", "commands": len(envelopes)},
            )
            return False
        report.outcomes += outcomes
        return True

    def _apply_all(self, tx: Transaction, envelopes: Sequence[Envelope]) -> list[Outcome]:
        deadline = self._clock.monotonic() + limits.BATCH_SECONDS_MAX
        outcomes: list[Outcome] = []
        try:
            command_ids.look_ahead(tx, envelopes)
            for envelope in envelopes:
                tx.now = self._clock.now_us()
                outcomes.append(apply_one(tx, envelope))
                _raise_swallowed(tx)
                self._check_in_transaction(envelope)
                if self._clock.monotonic() > deadline:
                    break
            tx.write_held()
        except StorageStopped as error:
            logger.warning(
                "a batch of %d commands was undone after %d of them: %s",
                len(envelopes),
                len(outcomes),
                error,
                extra={"action": "batch_undone", "commands": len(envelopes), "applied": len(outcomes)},
            )
            raise
        return outcomes

    def _transact(self, work: Callable[[Transaction], T], report: BatchReport) -> T:
        tx = Transaction(self.connection.raw, self._ids, self._obstacle)
        self.connection.begin()
        try:
            if epoch_of(tx) != self._epoch:
                raise NotAlone(
                    f"another writer has taken the database over; this one has epoch {self._epoch}"
                )
            value = work(tx)
            _raise_swallowed(tx)
            tx.write_held()
            self._check_in_transaction(None)
            began = self._clock.monotonic()
            self.connection.commit()
            report.commit_seconds += self._clock.monotonic() - began
        except BaseException:
            self.connection.rollback()
            raise
        report.rings |= tx.rings
        report.files |= tx.files
        return value

    def _check_in_transaction(self, envelope: Envelope | None) -> None:
        if not self.connection.in_transaction:
            name = envelope.name if envelope else "the last command"
            raise StorageFailed(f"the transaction was ended under {name}: an error was swallowed")

    # --- careful mode: one command, one transaction ---

    def _alone(
        self, envelope: Envelope, report: BatchReport, *, from_parked: bool = False, deaths: int = 0
    ) -> None:
        """Try until it is settled; nothing overtakes it meanwhile."""
        fate = self.read(lambda tx: settled(tx, envelope, self._clock.now_us()))
        if fate is not None and not from_parked:
            report.outcomes.append(Outcome(envelope, fate))
            return
        tries = self._tries_before(envelope, deaths)
        while not self._is_given_up(envelope, tries, report, from_parked=from_parked):
            self.mark.single(tries)
            self._pause(limits.CAREFUL_PAUSES_SECONDS[tries.counted])
            try:
                self.mark.single(replace(tries, is_under_way=True))
                outcome = self._transact(lambda tx: self._apply_single(tx, envelope, from_parked), report)
            except (StorageStopped, NotAlone, Stopping):
                self.mark.single(tries)
                raise
            except Exception as error:
                tries = replace(tries, exceptions=tries.exceptions + 1)
                self.mark.single(tries)
                self._last_error = describe(error)
                logger.warning(
                    "a command failed: %s",
                    self._last_error,
                    extra={"action": "command_failed", "command": envelope.name, "try": tries.counted},
                )
                continue
            report.outcomes.append(outcome)
            break
        self.mark.single_done()

    def _apply_single(self, tx: Transaction, envelope: Envelope, from_parked: bool) -> Outcome:
        tx.now = self._clock.now_us()
        return apply_one(tx, envelope, from_parked=from_parked)

    def _tries_before(self, envelope: Envelope, deaths: int) -> Tries:
        key, left = key_of(envelope), self.mark.last.tries
        return left if left is not None and left.key == key else Tries(key=key, deaths=deaths)

    def _is_given_up(
        self, envelope: Envelope, tries: Tries, report: BatchReport, *, from_parked: bool
    ) -> bool:
        if tries.counted >= limits.CAREFUL_TRIES:
            cause = "hang" if tries.hangs > tries.exceptions else "exception"
            self._bury(envelope, cause, tries, report)
        elif tries.deaths > limits.CAREFUL_TRIES or (
            tries.deaths == limits.CAREFUL_TRIES and not from_parked
        ):
            self._after_deaths(envelope, tries, report, from_parked=from_parked)
        else:
            return False
        return True

    def _after_deaths(
        self, envelope: Envelope, tries: Tries, report: BatchReport, *, from_parked: bool
    ) -> None:
        """A storm of kills must not condemn who merely stood there: one more chance, later and alone."""
        if from_parked:
            self._bury(envelope, "death", tries, report)
            return
        self._transact(lambda tx: letters.park(self._timed(tx), envelope, letters.DIED), report)
        report.outcomes.append(Outcome(envelope, Fate.PARKED))

    def _bury(self, envelope: Envelope, cause: str, tries: Tries, report: BatchReport) -> None:
        error = self._last_error if cause == "exception" else f"the writer's process ended under it ({cause})"

        def work(tx: Transaction) -> None:
            attempts = tries.counted + tries.deaths
            letters.bury(self._timed(tx), envelope, cause=cause, error=error, attempts=attempts)
            letters.unpark(tx, envelope)

        self._transact(work, report)
        logger.error(
            "a command failed each time and is a dead letter now",
            extra={"action": "dead_letter", "command": envelope.name, "cause": cause},
        )
        report.outcomes.append(Outcome(envelope, Fate.DEAD))

    def _timed(self, tx: Transaction) -> Transaction:
        tx.now = self._clock.now_us()
        return tx


def _raise_swallowed(tx: Transaction) -> None:
    """What was held back and could not be written, whatever the command at hand made of the error."""
    if tx.failure is not None:
        raise tx.failure

"""The writer's own loop: reads the stream, has it applied, answers, deletes. It needs no doorbell to go on."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from typing import Protocol, TypeVar

from memory_core import limits
from memory_core.clock import Clock
from memory_core.domain.command import Envelope
from memory_core.errors import CoreError, NotAlone, StorageStopped, Unavailable
from memory_core.store import letters
from memory_core.store.transaction import Transaction
from workers.queue.reader import Entry
from workers.writer.duties import Duties
from workers.writer.engine import Engine, Stopping
from workers.writer.metrics import Metrics
from workers.writer.report import BatchReport
from workers.writer.room import Room, State

logger = logging.getLogger(__name__)

T = TypeVar("T")

BLOCK_MS = 1_000
UNREADABLE = "unreadable"


class Queue(Protocol):
    """The broker's side, with this writer's claim to it. Everything may raise `Unavailable`, `claim` and `delete` `NotAlone`."""

    def claim(self) -> None: ...
    def read(self, count: int, block_ms: int) -> list[Entry]: ...
    def forget_tail(self) -> None: ...
    def delete(self, entries: Sequence[Entry]) -> None: ...
    def publish(self, ids: Sequence[bytes]) -> None: ...
    def ring(self, queues: set[str]) -> None: ...
    def tidy(self) -> None: ...


class Files(Protocol):
    """The wiki's side of the outbox."""

    def install(self, *, promised: bool) -> None:
        """Put promised files on disk: all when `promised`, else what was left over, if its time has come."""
        ...


class Outside(Protocol):
    """What people did to the wiki's files, found by a thread of its own."""

    @property
    def patience_ms(self) -> int | None:
        """How long the writer may wait for commands; None: as long as it likes."""
        ...

    def step(self, report: BatchReport, *, is_quiet: bool) -> bool:
        """Enter a little of it, and more where it `is_quiet`, which no commands come in; whether there was any."""
        ...


class WriterLoop:
    """One lock owns the connection; this loop and the Celery task take turns. `beat(busy_for)` says that a step was made."""

    def __init__(
        self,
        *,
        engine: Engine,
        queue: Queue,
        room: Room,
        duties: Duties,
        files: Files,
        metrics: Metrics,
        clock: Clock,
        beat: Callable[[float], None],
        stopping: threading.Event,
        outside: Outside | None = None,
    ) -> None:
        self._engine = engine
        self._outside = outside
        self._queue = queue
        self._room = room
        self._duties = duties
        self._files = files
        self._metrics = metrics
        self._clock = clock
        self._beat = beat
        self._stopping = stopping
        self._lock = threading.Lock()
        self._guest_waits = threading.Event()
        #: Read from the stream but not yet applied; older than what a read gives next.
        self._pending: list[Entry] = []
        #: Up to this entry commands are applied one by one: the last process died, or the last batch failed.
        self._careful_until = engine.mark.last.until
        self._claimed = False
        self._duties_at = 0.0
        #: Why the process must end, found by the other thread.
        self._fatal: CoreError | None = None

    def start(self) -> None:
        """What comes before the first command. Raises `NotAlone`, `StorageStopped`."""
        with self._lock:
            report = BatchReport()
            self._duties.at_start(report)
            self._settle(report)
            self._files.install(promised=True)

    def run(self) -> None:
        """Until told to stop. Raises `NotAlone` (another writer) and `StorageStopped` with `must_reopen`."""
        while not self._stopping.is_set():
            if self._guest_waits.is_set():
                # A lock is not fair: without this the task would wait as long as there is anything to do.
                self._guest_waits.clear()
                self._clock.sleep(0.001)
            with self._lock:
                pause = self._step(BLOCK_MS)
            if pause:
                self._stopping.wait(pause)
        if self._fatal is not None:
            raise self._fatal

    def drain(self, seconds: float = limits.DRAIN_SECONDS_MAX) -> dict[str, int]:
        """The same work for a doorbell: until `seconds` are over or nothing came. How many commands it applied."""
        deadline = self._clock.monotonic() + seconds
        before = self._metrics.commands
        batches = 0
        with self._turn(), self._ending_the_process():
            while not self._stopping.is_set() and (left := deadline - self._clock.monotonic()) > 0:
                had = self._metrics.commands
                pause = self._step(min(BLOCK_MS, int(left * 1000) + 1))
                batches += int(self._metrics.commands > had)
                if pause or (self._metrics.commands == had and batches):
                    break
            self._metrics.drain_task_ran()
            return {"applied": self._metrics.commands - before, "batches": batches}

    def originate(self, work: Callable[[Transaction], T]) -> T:
        """One transaction of the writer's own beside the loop, for instance after its end: the doorbell task may still be at it."""
        with self._lock:
            return self._engine.originate(work)

    @contextmanager
    def _turn(self) -> Generator[None]:
        self._guest_waits.set()
        with self._lock:
            self._guest_waits.clear()
            yield

    @contextmanager
    def _ending_the_process(self) -> Generator[None]:
        try:
            yield
        except (NotAlone, StorageStopped) as error:
            self._fatal = error
            self._stopping.set()
            raise

    def _step(self, block_ms: int) -> float:
        """One look at the stream, and what follows from it. How long to wait before the next, seconds (0: not at all)."""
        self._beat(0.0)
        try:
            if not self._room.may_apply():
                self._write_metrics()
                return limits.STORAGE_RETRY_SECONDS
            patience_ms = None if self._outside is None else self._outside.patience_ms
            if patience_ms is not None:
                block_ms = min(block_ms, patience_ms)
            entries = self._next_entries(block_ms)
            if entries:
                self._apply(entries)
            entered = self._look_outside(is_quiet=not entries)
            self._look_after_duties(is_idle=not entries and not entered)
        except Unavailable as error:
            self._broker_lost(error)
            self._look_after_duties(is_idle=False)
            return limits.BROKER_RETRY_SECONDS
        except StorageStopped as error:
            self._storage_stopped(error)
            return limits.STORAGE_RETRY_SECONDS
        except Stopping:
            return 0.0
        return 0.0

    # --- the stream ---

    def _next_entries(self, block_ms: int) -> list[Entry]:
        if not self._claimed:
            self._queue.claim()
            self._claimed = True
        entries = self._pending or self._queue.read(self._room.batch_commands, block_ms)
        self._pending = []
        if not entries:
            self._careful_until = ""
        first = entries[: self._room.batch_commands]
        if self._careful_until and first:
            careful = [entry for entry in first if _place(entry.stream_id) <= _place(self._careful_until)]
            if careful:
                first = careful
            else:
                self._careful_until = ""
        self._pending = entries[len(first) :]
        return first

    def _apply(self, entries: list[Entry]) -> None:
        readable = [entry for entry in entries if entry.envelope is not None]
        if len(readable) < len(entries):
            entries = self._bury_unreadable(entries)
            if not entries:
                return
        until = entries[-1].stream_id.decode()
        envelopes = [entry.envelope for entry in entries if entry.envelope is not None]
        report = self._engine.apply_batch(envelopes, until=until, careful=bool(self._careful_until))
        if report.stopped is not None and not report.outcomes:
            raise report.stopped
        done = entries[: len(report.outcomes)]
        self._pending = entries[len(done) :] + self._pending
        if report.was_careful and self._pending and len(done) < len(entries):
            self._careful_until = until
        self._metrics.count(report)
        # After the commit: the answer first, then the entries go, then the files come.
        self._settle(report)
        lost: Unavailable | None = None
        try:
            self._queue.delete(done)
        except Unavailable as error:
            lost = error
        self._files.install(promised=bool(report.files))
        if lost is not None:
            raise lost
        if report.stopped is not None:
            raise report.stopped
        if report.interrupted:
            raise Stopping
        self._room.after_batch()

    def _bury_unreadable(self, entries: list[Entry]) -> list[Entry]:
        """The entries before the first one that cannot be read; if that is the head, it becomes a dead letter."""
        at = next(index for index, entry in enumerate(entries) if entry.envelope is None)
        if at:
            self._pending = entries[at:] + self._pending
            return entries[:at]
        head = entries[0]
        envelope = _envelope_of(head.raw, self._clock.now_us())
        self._engine.originate(
            lambda tx: letters.bury(
                tx, envelope, cause="exception", error="the entry of the stream cannot be read", attempts=1
            )
        )
        self._queue.delete([head])
        self._pending = entries[1:] + self._pending
        return []

    def _settle(self, report: BatchReport) -> None:
        """Tell those who wait, and the pools."""
        try:
            self._queue.publish(report.reply_ids)
        except Unavailable:
            self._claimed = False  # they look by themselves at their deadline
        if report.rings:
            self._queue.ring(report.rings)

    # --- what else there is ---

    def _look_outside(self, *, is_quiet: bool) -> bool:
        """Whether something was entered."""
        if self._outside is None:
            return False
        report = BatchReport()
        entered = self._outside.step(report, is_quiet=is_quiet)
        if report.files:
            self._files.install(promised=True)
        if entered:
            self._room.after_batch()
        return entered

    def _look_after_duties(self, *, is_idle: bool) -> None:
        now = self._clock.monotonic()
        if not is_idle and now - self._duties_at < limits.DUTY_SECONDS:
            return
        self._duties_at = now
        report = BatchReport()
        try:
            self._duties.run(report)
            self._duties.retry_parked(report, is_idle=is_idle)
        finally:
            self._settle(report)
        self._files.install(promised=bool(report.files))
        if is_idle:
            self._room.when_idle()
            self._queue.tidy()
        self._write_metrics()

    def _broker_lost(self, error: Unavailable) -> None:
        if self._claimed:
            logger.warning("the broker does not answer: %s", error, extra={"action": "broker_lost"})
        self._claimed = False
        self._forget()

    def _storage_stopped(self, error: StorageStopped) -> None:
        self._forget()
        self._room.stop(error)
        self._write_metrics()
        if error.must_reopen:
            raise error

    def _forget(self) -> None:
        """Begin at the head again: what was committed is known by its id."""
        self._pending = []
        self._queue.forget_tail()

    def _write_metrics(self) -> None:
        try:
            waiting = dict(self._engine.read(letters.counts))
        except CoreError:
            waiting = None  # the database cannot even be read; the state says so
        self._metrics.write(
            state=self._room.state.value,
            is_stopped=self._room.state is State.STOPPED,
            wal_bytes=self._engine.connection.wal_bytes,
            letters=waiting,
        )


def _place(stream_id: bytes | str) -> tuple[int, int]:
    """A stream id as a place in the order of the stream."""
    text = stream_id.decode() if isinstance(stream_id, bytes) else stream_id
    first, _, second = text.partition("-")
    return int(first), int(second or 0)


def _envelope_of(raw: bytes, now: int) -> Envelope:
    digest = blake2b(raw, digest_size=16).digest()
    return Envelope(
        id=digest,
        name=UNREADABLE,
        version=0,
        body=raw,
        body_hash=digest,
        principal="unknown",
        token_scope="",
        recorded_at=now,
    )

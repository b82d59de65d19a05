"""One pool worker put together: its queues with their slots, the Celery consumer that is rung, and a look at itself.

Three things look at a queue: a doorbell, the worker itself when nobody rang for a while, and whoever ended a job.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import warnings
from functools import partial
from typing import Any

from celery import Celery, signals
from celery.concurrency.thread import TaskPool
from celery.worker import state
from kombu.exceptions import OperationalError

from memory_core import limits
from memory_core.clock import Clock
from memory_core.config import Settings
from workers import exit_codes
from workers.broker import broker_url
from workers.celery_app import LOOK_TASK, make_app, queue_name, ring, worker_of
from workers.hearing import Hearing
from workers.heartbeat import Heartbeat, heartbeat_file
from workers.pool.claiming import Claim, ClaimedJob, claim
from workers.pool.gate import PoolGate
from workers.pool.killable import ComputeChild, Nursery
from workers.pool.remote import gate_of, install_of, name_of, queues_of
from workers.pool.running import Pace, Run
from workers.pool.slots import Slots
from workers.queue.connect import writer_client
from workers.queue.doorbell import Doorbell

logger = logging.getLogger(__name__)

_RESTART_SECONDS = 1.0


class Threads(TaskPool):
    """Celery's thread pool, except that a consumer that ends does not wait for the jobs: they belong to the slots."""

    def on_stop(self) -> None:
        self.executor.shutdown(wait=False, cancel_futures=True)


class Worker:
    """Runs from `run` until somebody asks it to stop, or until its consumer hears nothing any more."""

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        gate: PoolGate,
        install: str,
        *,
        pace: Pace | None = None,
        look_seconds: float = limits.POOL_LOOK_SECONDS,
    ) -> None:
        """Connects to nothing yet. Raises `Unavailable` where no broker is known."""
        self._install = install
        self._clock = clock
        self._gate = gate
        self._pace = pace or Pace()
        self._look_seconds = look_seconds
        self._name = name_of(settings)
        self._data = None if settings.off_data_host else settings
        self._heart = Heartbeat(heartbeat_file(settings.run_dir, "pool"), clock)
        #: Nothing new begins. Then: what runs is handed back.
        self._closing = threading.Event()
        self._stopping = threading.Event()
        self._consumed = threading.Event()
        self._is_ready = False
        self._app = make_app(settings, install, consumer="pool")
        self._sender = make_app(settings, install)
        self._broker = writer_client(broker_url(settings), block_seconds=0.0)
        queues = queues_of(settings)
        self._hearing = Hearing(
            queues, lambda queue: int(self._broker.llen(queue_name(install, queue))), clock
        )
        nursery = Nursery()
        self._slots = {
            queue: self._slots_of(
                queue, [ComputeChild(nursery.spawn, clock) for _ in range(settings.pool_slots)]
            )
            for queue in queues
        }

    def run(self) -> int:
        """In the main thread, which takes the signals; the exit code."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._asked_to_stop)
        for slots in self._slots.values():
            threading.Thread(
                target=self._look_by_itself, args=(slots,), name=f"look-{slots.queue}", daemon=True
            ).start()
        threading.Thread(target=self._watch, name="pulse", daemon=True).start()
        self._consume()
        return exit_codes.OK

    # --- being rung ---

    def _consume(self) -> None:
        # Celery's advice about root and about a coming default; both were considered.
        warnings.filterwarnings("ignore", module="celery")
        signals.worker_ready.connect(self._consuming, weak=False)
        signals.setup_logging.connect(_keep_our_logging, weak=False)
        # A doorbell that is lost is no loss, and one that waits for a long job would come again.
        self._app.task(name=LOOK_TASK, acks_late=False)(self._look)
        threads = sum(slots.count for slots in self._slots.values()) + limits.POOL_SPARE_THREADS
        while not self._closing.is_set():
            consumer = worker_of(
                self._app, self._install, tuple(self._slots), name=self._name, threads=threads, pool=Threads
            )
            # Its own signal handlers would end the consumer behind our back.
            consumer.install_platform_tweaks = _nothing
            try:
                consumer.start()
            except SystemExit:
                pass
            except Exception as error:
                logger.warning(
                    "the consumer of doorbells ended: %s", error, extra={"action": "consumer_ended"}
                )
            self._closing.wait(_RESTART_SECONDS)
        self._consumed.set()
        self._stopping.wait()

    def _look(self, queue: str) -> dict[str, str]:
        self._hearing.heard(queue)
        slots = self._slots.get(queue)
        return slots.look().shown() if slots is not None else {"job": "", "kind": "", "outcome": "not served"}

    def _consuming(self, **_: Any) -> None:
        self._is_ready = True

    # --- looking by itself ---

    def _look_by_itself(self, slots: Slots) -> None:
        while not self._closing.wait(self._look_seconds / 5):
            slots.look_if_idle(self._look_seconds)
            slots.rest(limits.POOL_CHILD_IDLE_SECONDS)

    def _watch(self) -> None:
        """The sign of life: this worker's consumer hears, and no slot is past all its times."""
        while not self._stopping.wait(limits.POOL_PULSE_SECONDS):
            stuck = next((slots.queue for slots in self._slots.values() if slots.is_overdue), None)
            if stuck is not None:
                logger.error(
                    "a slot got nowhere within its time", extra={"action": "slot_hangs", "queue": stuck}
                )
                continue
            self._heart.beat(ready=self._is_ready)
            if not self._closing.is_set() and (queue := self._hearing.deaf_to()) is not None:
                logger.error(
                    "the consumer hears no doorbell any more; the worker starts anew when its jobs are done",
                    extra={"action": "consumer_hangs", "queue": queue},
                )
                self._closing.set()
            if self._closing.is_set() and not any(slots.is_busy for slots in self._slots.values()):
                self._end()

    # --- ending ---

    def _asked_to_stop(self, *_: object) -> None:
        state.should_stop = 0
        if not self._stopping.is_set():
            self._closing.set()
            threading.Thread(target=self._end, name="end", daemon=True).start()

    def _end(self) -> None:
        """Hand back what runs, then end, whatever hangs: the main thread may sit in a call that never returns."""
        self._stopping.set()
        end = self._clock.monotonic() + limits.POOL_STOP_SECONDS
        for slots in self._slots.values():
            slots.stop()
        for slots in self._slots.values():
            slots.wait_idle(max(0.0, end - self._clock.monotonic()))
            slots.kill_children()
        self._consumed.wait(max(0.0, end - self._clock.monotonic()))
        logging.shutdown()
        os._exit(exit_codes.OK)

    # --- parts ---

    def _slots_of(self, queue: str, children: list[ComputeChild]) -> Slots:
        bell = Doorbell(partial(ring, self._sender, self._install, queue))
        return Slots(
            queue,
            children,
            claim_next=partial(
                claim,
                self._gate,
                [queue],
                worker=self._name,
                on_data_host=self._data is not None,
                seconds=self._pace.claim_seconds,
                pause=self._pause,
            ),
            make_run=self._run_of,
            ring=bell.ring,
            ring_now=partial(_rang, self._sender, self._install, queue),
            closing=self._closing,
            clock=self._clock,
        )

    def _run_of(self, job: ClaimedJob, claimed: Claim, lease: str, child: ComputeChild) -> Run:
        return Run(
            job,
            claimed,
            lease,
            gate=self._gate,
            child=child,
            clock=self._clock,
            pace=self._pace,
            pause=self._pause,
            data=self._data,
        )

    def _pause(self, seconds: float) -> bool:
        return not self._stopping.wait(seconds)


def assemble(settings: Settings, clock: Clock) -> Worker:
    """A worker for these settings. Raises `Unavailable` where install, broker or gate are not known yet."""
    gate = gate_of(settings, clock)
    return Worker(settings, clock, gate, install_of(settings, gate))


def _rang(app: Celery, install: str, queue: str) -> bool:
    try:
        ring(app, install, queue)
    except OperationalError:
        return False
    return True


def _nothing(_: object) -> None:
    """In place of something that is not wanted."""


def _keep_our_logging(**_: object) -> None:
    """That somebody listens to this signal keeps Celery from its own set-up."""

"""The Celery consumer inside the writer's process: it turns doorbells into turns of the writer's loop.

It runs in a thread of its own and is started only when the process already owns the database: Celery swallows
exceptions of its start signals, and a consumer without an engine would eat doorbells. When it dies
(a broker that restarts can do that) it is started anew; the loop does not depend on it. When it lives but
hears nothing any more (a restarted broker can do that too) its thread cannot be ended: the process ends in
order, and the supervisor starts another.
"""

from __future__ import annotations

import logging
import threading
import warnings
from collections.abc import Callable

from celery import Celery, signals
from celery.worker import state

from memory_core.clock import Clock
from workers.celery_app import DRAIN_TASK, WRITER, worker_of
from workers.hearing import Hearing

logger = logging.getLogger(__name__)

_RESTART_SECONDS = 1.0
_LOOK_SECONDS = 2.0
_END_SECONDS = 3.0


class Consumer:
    """One consumer of the writer's doorbells, with a thread pool of 1, so that pings and events still flow."""

    def __init__(
        self,
        app: Celery,
        install: str,
        drain: Callable[[], dict[str, int]],
        *,
        waiting: Callable[[], int],
        clock: Clock,
        stopping: threading.Event,
    ) -> None:
        """`waiting`: how many doorbells lie on the broker; raises `RedisError` when it is away."""
        self._app = app
        self._install = install
        self._drain = drain
        self._hearing = Hearing((WRITER,), lambda _: waiting(), clock)
        self._stopping = stopping
        self._thread = threading.Thread(target=self._run, name="celery", daemon=True)
        self._watch = threading.Thread(target=self._watch_over, name="celery-watch", daemon=True)
        app.task(name=DRAIN_TASK)(self._answer)

    def start(self) -> None:
        # Celery's advice about root and about a coming default; both were considered.
        warnings.filterwarnings("ignore", module="celery")
        signals.setup_logging.connect(_keep_our_logging, weak=False)
        self._thread.start()
        self._watch.start()

    def hangs(self) -> bool:
        """Whether doorbells wait and none was answered for too long. Look every few seconds."""
        return self._hearing.deaf_to() is not None

    def end(self) -> None:
        """Ask it to end and wait a moment; a consumer that hangs is left behind, it holds nothing."""
        state.should_stop = 0
        self._thread.join(_END_SECONDS)

    def _answer(self) -> dict[str, int]:
        self._hearing.heard(WRITER)
        try:
            return self._drain()
        finally:
            self._hearing.heard(WRITER)

    def _watch_over(self) -> None:
        while not self._stopping.wait(_LOOK_SECONDS):
            if self.hangs():
                logger.error(
                    "the consumer hears no doorbell any more; the writer starts anew",
                    extra={"action": "consumer_hangs"},
                )
                self._stopping.set()

    def _run(self) -> None:
        while not self._stopping.is_set():
            state.should_stop = None
            state.should_terminate = None
            try:
                worker_of(self._app, self._install, (WRITER,), name=WRITER, threads=1).start()
            except SystemExit:
                pass
            except Exception as error:
                logger.warning(
                    "the consumer of doorbells ended: %s", error, extra={"action": "consumer_ended"}
                )
            self._stopping.wait(_RESTART_SECONDS)


def _keep_our_logging(**_: object) -> None:
    """That somebody listens to this signal keeps Celery from its own set-up."""

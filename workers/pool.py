"""The worker of all pool queues. A doorbell makes it look at its queue; it carries no work itself."""

from __future__ import annotations

import logging
import signal
import sys
import threading
import warnings
from collections.abc import Iterable

from celery import signals
from celery.worker import state

from memory_core import config
from memory_core.clock import SystemClock
from workers import logs
from workers.celery_app import LOOK_TASK, POOL_QUEUES, make_app, worker_of
from workers.heartbeat import Heartbeat, heartbeat_file

logger = logging.getLogger(__name__)


class Rounds:
    """Beats once every queue was looked at since the last beat: one queue that starves is a hang, too."""

    def __init__(self, heart: Heartbeat, queues: Iterable[str]) -> None:
        self._heart = heart
        self._queues = frozenset(queues)
        self._seen: set[str] = set()
        self._lock = threading.Lock()

    def looked_at(self, queue: str) -> None:
        with self._lock:
            self._seen.add(queue)
            if self._queues <= self._seen:
                self._seen.clear()
                self._heart.beat()


def main() -> int:
    settings = config.load()
    logs.configure(settings, "pool")
    # Celery's advice about root and about a coming default; both were considered.
    warnings.filterwarnings("ignore", module="celery")
    install = config.install_id(settings)
    heart = Heartbeat(heartbeat_file(settings.run_dir, "pool"), SystemClock())
    rounds = Rounds(heart, POOL_QUEUES)
    app = make_app(settings, install, consumer="pool")

    @app.task(name=LOOK_TASK)
    def look(queue: str) -> None:
        rounds.looked_at(queue)

    def consuming(**_: object) -> None:
        # Celery's own handlers do the same, and talk to the terminal about it.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: setattr(state, "should_stop", 0))
        heart.beat()

    def keep_our_logging(**_: object) -> None:
        """That somebody listens to this signal keeps Celery from its own set-up."""

    signals.worker_ready.connect(consuming, weak=False)
    signals.setup_logging.connect(keep_our_logging, weak=False)
    worker = worker_of(app, install, POOL_QUEUES, name="pool", threads=len(POOL_QUEUES))
    worker.start()
    return worker.exitcode or 0


if __name__ == "__main__":
    sys.exit(main())

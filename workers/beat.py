"""Rings every queue every few seconds. It decides nothing: what is due, the writer knows.

Doubled, late or missing rings do no harm, so there is no schedule and no file of one.
"""

from __future__ import annotations

import logging
import signal
import sys
import threading

from celery import Celery
from kombu.exceptions import OperationalError

from memory_core import config, limits
from memory_core.clock import SystemClock
from workers import logs
from workers.celery_app import QUEUES, make_app, ring
from workers.heartbeat import Heartbeat, heartbeat_file
from workers.queue.disk import DiskGauge

logger = logging.getLogger(__name__)


def main() -> int:
    settings = config.load()
    logs.configure(settings, "beat")
    install = config.install_id(settings)
    app = make_app(settings, install)
    clock = SystemClock()
    heart = Heartbeat(heartbeat_file(settings.run_dir, "beat"), clock)
    # Off the data host the id was handed out on the disk of the others' volumes; its own directory may be memory.
    apart = settings.install_file.parent if settings.off_data_host else None
    gauge = DiskGauge(settings, clock, directory=apart)
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    was_heard = True
    while not ended.is_set():
        heart.beat()
        # On a full disk nobody writes to the broker: it ends itself when it cannot sync.
        is_heard = gauge.backlog_room_bytes() == 0 or ring_all(app, install)
        if was_heard and not is_heard:
            logger.warning("the broker takes no doorbells", extra={"action": "ring_failed"})
        was_heard = is_heard
        ended.wait(limits.RING_SECONDS)
    return 0


def ring_all(app: Celery, install: str) -> bool:
    """Ring each queue once; False when the broker does not take it."""
    try:
        for queue in QUEUES:
            ring(app, install, queue)
    except OperationalError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())

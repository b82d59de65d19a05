"""Flower, the web page of Celery's tasks and workers, closed to strangers and without a hand on anything.

It hears Celery's events and shows `writer.drain` with what it applied and `pool.look` with its job. Everything that would send
a message to a worker is off: workers take no remote control, and Flower is read-only.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from typing import Any

from celery import Celery
from flower.app import Flower
from flower.options import options
from flower.urls import settings as page_settings
from flower.views.monitor import Metrics
from tornado.web import authenticated

from memory_core import config, limits
from memory_core.clock import SystemClock
from memory_core.config import Settings
from memory_core.errors import Unavailable
from workers import exit_codes, logs
from workers.celery_app import make_app
from workers.heartbeat import Heartbeat, heartbeat_file
from workers.supervisor.ports import sentence

logger = logging.getLogger(__name__)

# Its figures are the only page that it would show to everybody.
setattr(Metrics, "get", authenticated(Metrics.get))  # noqa: B010 — a method of somebody else's class


class Page(Flower):
    """Flower that asks no worker anything: what it shows it has heard."""

    def __init__(self, app: Celery, heart: Heartbeat) -> None:
        super().__init__(capp=app, options=options, **page_settings)
        self._heart = heart
        self._note = self.events.on_event
        self.events.on_event = self._hear

    def _hear(self, event: dict[str, Any]) -> None:
        """Called by the thread that listens; the beat comes from the page's own loop, and so says: events arrive,
        and requests are answered."""
        self._note(event)
        self.io_loop.add_callback(self._heart.beat)

    def update_workers(self, workername: str | None = None) -> asyncio.Future[None]:  # noqa: ARG002 — Flower's signature
        done: asyncio.Future[None] = asyncio.get_event_loop().create_future()
        done.set_result(None)
        return done

    def serve(self) -> None:
        """Until SIGTERM or SIGINT. Raises `Unavailable` where its port cannot be had."""
        try:
            self.start_http_server()
        except OSError as error:
            raise Unavailable(sentence(options.address, options.port, error)) from error
        loop = asyncio.get_event_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        self.io_loop.add_callback(self._heart.beat)
        self.start()


def main() -> int:
    with exit_codes.said_in_a_line():
        return _serve(config.load())


def _serve(settings: Settings) -> int:
    logs.configure(settings, "flower")
    # Who was refused is no news; without this it would go to the terminal.
    logging.getLogger("tornado.access").setLevel(logging.CRITICAL)
    options.address = settings.flower_host
    options.port = settings.effective_flower_port
    options.basic_auth = [password_of(settings)]
    options.read_only = True
    options.enable_events = False
    options.max_tasks = limits.FLOWER_TASKS_MAX
    options.max_workers = limits.FLOWER_WORKERS_MAX
    # A foreign page may not open it, and it must not be opened to everybody by a variable that strayed here.
    os.environ.pop("FLOWER_UNAUTHENTICATED_API", None)
    heart = Heartbeat(heartbeat_file(settings.run_dir, "flower"), SystemClock())
    heart.beat(ready=False)
    app = make_app(settings, config.install_id(settings), consumer="flower")
    Page(app, heart).serve()
    return 0


def password_of(settings: Settings) -> str:
    """`user:password`, as the writer's supervisor wrote it at its first start. Raises `Unavailable` where it is not there."""
    try:
        return settings.flower_auth_file.read_text(encoding="ascii").strip()
    except OSError as error:
        raise Unavailable(
            f"cannot read {settings.flower_auth_file} ({error.strerror}); it is made when the writer starts"
        ) from error


if __name__ == "__main__":
    sys.exit(main())

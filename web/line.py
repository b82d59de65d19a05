"""The line to the broker: made when first needed, because the install's id is known only once its writer ran."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from redis import Redis
from redis.exceptions import RedisError

from memory_core.clock import Clock
from memory_core.config import Settings
from memory_core.domain.command import Envelope
from memory_core.errors import Unavailable
from web.together import Together
from workers.broker import broker_url
from workers.queue.admission import Admission, CommandQueue
from workers.queue.connect import admission_client, subscriber_client
from workers.queue.depth import Backlog, backlog
from workers.queue.disk import DiskGauge
from workers.queue.doorbell import Doorbell
from workers.queue.incoming import Incoming
from workers.queue.keys import Keys
from workers.queue.replies import Replies, Waiter

_NOT_YET = "this data directory has no writer yet; start it with `memoryd up`"


@dataclass(frozen=True, kw_only=True)
class _Ends:
    client: Redis
    keys: Keys
    queue: CommandQueue
    replies: Replies
    doorbell: Doorbell


class Line:
    """Everything that goes over the broker, for one process. `install` gives the install's id, or empty text."""

    def __init__(self, settings: Settings, clock: Clock, disk: DiskGauge, install: Callable[[], str]) -> None:
        self._settings = settings
        self._clock = clock
        self._disk = disk
        self._install = install
        self._lock = threading.Lock()
        self._made: _Ends | None = None
        self._together = Together(self._append)

    def start(self) -> None:
        """Listen for replies before the first request waits for one. Once per process, after the last fork; where no writer ran
        yet, the first request begins it."""
        with suppress(Unavailable):
            self._ends().replies.start()

    def append(self, envelopes: Sequence[Envelope]) -> Admission:
        return self._together.append(envelopes)

    def _append(self, envelopes: Sequence[Envelope]) -> Admission:
        return self._ends().queue.append(envelopes)

    def ensure_subscribed(self, timeout: float) -> None:
        self._ends().replies.ensure_subscribed(timeout)

    def expect(self, ids: Iterable[bytes]) -> Waiter:
        return self._ends().replies.expect(ids)

    def ring(self) -> None:
        """Ring the writer's doorbell, beside the request."""
        self._ends().doorbell.ring()

    def backlog(self) -> Backlog:
        ends = self._ends()
        return backlog(ends.client, ends.keys)

    def ping(self) -> None:
        """`Unavailable` when the broker does not answer."""
        try:
            self._ends().client.ping()
        except RedisError as error:
            raise Unavailable(f"the broker does not answer ({type(error).__name__})") from error

    def broker_version(self) -> str:
        """Name and version, such as `valkey 9.1.2`; `Unavailable` when the broker does not answer."""
        try:
            told: dict[str, Any] = self._ends().client.info("server")
        except RedisError as error:
            raise Unavailable(f"the broker does not answer ({type(error).__name__})") from error
        name = told.get("server_name") or "redis"
        return f"{name} {told.get(f'{name}_version') or told.get('redis_version', '')}".strip()

    def close(self) -> None:
        if self._made is not None:
            self._made.replies.close()
            self._made.doorbell.close(timeout=0.5)

    def _ends(self) -> _Ends:
        if self._made is None:
            with self._lock:
                self._made = self._made or self._make()
        return self._made

    def _make(self) -> _Ends:
        install = self._install()
        if not install:
            raise Unavailable(_NOT_YET, retry_after_seconds=2.0)
        url = broker_url(self._settings)
        client, keys = admission_client(url), Keys(install)
        incoming = Incoming(self._settings.incoming)
        return _Ends(
            client=client,
            keys=keys,
            queue=CommandQueue(client, keys, self._clock, self._disk, incoming=incoming),
            replies=Replies(lambda: subscriber_client(url), keys, self._clock),
            doorbell=Doorbell(_ringer(self._settings, install)),
        )


def _ringer(settings: Settings, install: str) -> Callable[[], None]:
    """Sends the doorbell's message; Celery is loaded by the first ring, on the doorbell's own thread."""
    made: list[Callable[[], None]] = []

    def ring() -> None:
        if not made:
            from workers.celery_app import WRITER, make_app
            from workers.celery_app import ring as send

            app = make_app(settings, install)
            made.append(lambda: send(app, install, WRITER))
        made[0]()

    return ring

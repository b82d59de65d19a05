"""Whether a Celery consumer still hears its doorbells: after a restart of the broker it may live and hear nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from redis.exceptions import RedisError

from memory_core import limits
from memory_core.clock import Clock


class Hearing:
    """Compares what was heard with what waits on the broker. `heard` may be called from any thread, `deaf_to` from one."""

    def __init__(self, queues: Iterable[str], waiting: Callable[[str], int], clock: Clock) -> None:
        """`waiting`: how many doorbells of a queue lie on the broker; raises `RedisError` when it is away."""
        self._queues = tuple(queues)
        self._waiting = waiting
        self._clock = clock
        self._heard_at: dict[str, float] = {}
        #: Since when each look found doorbells waiting.
        self._waits_since: dict[str, float] = {}

    def heard(self, queue: str) -> None:
        self._heard_at[queue] = self._clock.monotonic()

    def deaf_to(self) -> str | None:
        """A queue at which doorbells waited at every look, and none was answered, for too long; None where all is well.
        Look every few seconds."""
        now = self._clock.monotonic()
        try:
            waiting = {queue for queue in self._queues if self._waiting(queue) > 0}
        except RedisError:
            waiting = set[str]()  # nobody can ring: its silence says nothing
        self._waits_since = {
            queue: self._waits_since.get(queue, now) for queue in self._queues if queue in waiting
        }
        for queue, since in self._waits_since.items():
            if now - max(since, self._heard_at.get(queue, since)) >= limits.CONSUMER_SILENT_SECONDS:
                return queue
        return None

"""Which pool workers asked for jobs lately. In memory: after a start the answer is whole when every worker looked once."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass

from memory_core import limits
from memory_core.clock import MICROSECONDS, Clock


@dataclass(frozen=True, kw_only=True)
class Heard:
    """A worker, the queues that it asked for within the time, and when it last asked (UTC microseconds)."""

    worker: str
    queues: tuple[str, ...]
    at: int


class Presence:
    """For all threads of the one web process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        #: By worker: the monotonic second at which it last asked for each queue. The one heard last is the last.
        self._asked: dict[str, dict[str, float]] = {}

    def heard(self, worker: str, queues: Iterable[str]) -> None:
        """A worker asked for a job of these queues."""
        now = self._clock.monotonic()
        with self._lock:
            asked = self._asked.pop(worker, {})
            self._asked[worker] = {**asked, **dict.fromkeys(queues, now)}
            if len(self._asked) > limits.POOL_WORKERS_KNOWN:
                del self._asked[next(iter(self._asked))]

    def lately(self, seconds: float = limits.POOL_HEARD_SECONDS) -> list[Heard]:
        """By name."""
        now, wall = self._clock.monotonic(), self._clock.now_us()
        with self._lock:
            asked = {worker: dict(queues) for worker, queues in self._asked.items()}
        found: list[Heard] = []
        for worker, queues in sorted(asked.items()):
            served = {queue: at for queue, at in queues.items() if now - at <= seconds}
            if served:
                silent = now - max(served.values())
                found.append(
                    Heard(worker=worker, queues=tuple(sorted(served)), at=wall - round(silent * MICROSECONDS))
                )
        return found

    def serving(self) -> dict[str, int]:
        """How many workers asked lately, by queue."""
        count: dict[str, int] = {}
        for heard in self.lately():
            for queue in heard.queues:
                count[queue] = count.get(queue, 0) + 1
        return count

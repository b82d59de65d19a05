"""Time as a port: wall clock in UTC microseconds and a monotonic clock in seconds."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol

MICROSECONDS = 1_000_000


class Clock(Protocol):
    """Where all code asks for the time. Never blocks except in `sleep`."""

    def now_us(self) -> int:
        """Microseconds since the epoch, UTC. May step backwards; never use it to measure a duration."""
        ...

    def monotonic(self) -> float:
        """Seconds from an arbitrary start; never steps backwards."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait that long."""
        ...


class SystemClock:
    def now_us(self) -> int:
        return time.time_ns() // 1000

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class FakeClock:
    """A clock that moves only when told to; `sleep` moves it."""

    def __init__(self, now_us: int = 1_780_000_000 * MICROSECONDS) -> None:
        self._now_us = now_us
        self._monotonic = 1_000.0

    def now_us(self) -> int:
        return self._now_us

    def monotonic(self) -> float:
        return self._monotonic

    def sleep(self, seconds: float) -> None:
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        self._now_us += round(seconds * MICROSECONDS)
        self._monotonic += seconds

    def set_wall(self, seconds: float) -> None:
        """Somebody sets the wall clock, that much ahead (or back)."""
        self._now_us += round(seconds * MICROSECONDS)


def rfc3339(us: int) -> str:
    """`us` (UTC microseconds) as RFC 3339 text with a `Z`, whole seconds when there is no fraction."""
    text = datetime.fromtimestamp(us / MICROSECONDS, tz=UTC).isoformat()
    return text.replace("+00:00", "Z")

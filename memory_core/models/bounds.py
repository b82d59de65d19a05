"""What one call may take: time, bytes, and whether it goes on at all."""

from __future__ import annotations

from dataclasses import dataclass, field

from memory_core import limits
from memory_core.clock import Clock
from memory_core.models.errors import Cancelled, TimedOut
from memory_core.models.port import Cancel


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """The bounds of one call, shared by its tries."""

    clock: Clock
    cancel: Cancel
    #: On the monotonic clock.
    deadline: float
    answer_max_bytes: int = field(default_factory=lambda: limits.MODEL_ANSWER_MAX_BYTES)

    def remaining_seconds(self) -> float:
        return self.deadline - self.clock.monotonic()

    def check(self) -> None:
        """Raises `Cancelled` or `TimedOut` when the call is to end."""
        if self.cancel():
            raise Cancelled
        if self.remaining_seconds() <= 0:
            raise TimedOut

    def wait(self, seconds: float) -> None:
        """Let that much time pass. Raises as `check`."""
        until = self.clock.monotonic() + seconds
        while (left := until - self.clock.monotonic()) > 0:
            self.check()
            self.clock.sleep(min(left, limits.MODEL_POLL_SECONDS))
        self.check()

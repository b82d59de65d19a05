"""How long to wait before a start: two deaths in a row are forgiven, then the pauses grow."""

from __future__ import annotations

from memory_core import limits


class DeathRow:
    """Counts deaths in a row. A life that was ready for `STEADY_SECONDS` ends the row."""

    def __init__(self) -> None:
        self.deaths = 0

    def died(self, steady_seconds: float) -> float:
        """Note a death after `steady_seconds` of readiness (0: never ready); the pause before the next start, seconds."""
        if steady_seconds >= limits.STEADY_SECONDS:
            self.deaths = 0
        pauses = limits.RESPAWN_PAUSES_SECONDS
        pause = pauses[min(self.deaths, len(pauses) - 1)]
        self.deaths += 1
        return pause

"""Times as people read them, with the exact one behind."""

from __future__ import annotations

from datetime import datetime

from markupsafe import Markup

from memory_core.clock import MICROSECONDS, Clock, rfc3339

_STEPS = ((60, "second"), (3_600, "minute"), (86_400, "hour"), (30 * 86_400, "day"))
_SIZES = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400}
_TIME = Markup('<time datetime="{0}" title="{0}">{1}</time>')


class Times:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def when(self, us: int) -> Markup:
        """How long ago or ahead, UTC microseconds; far away the day."""
        return _TIME.format(
            rfc3339(us), distance((self._clock.now_us() - us) // MICROSECONDS) or rfc3339(us)[:10]
        )

    def told(self, text: str) -> Markup:
        """The same of an RFC 3339 time."""
        return self.when(round(datetime.fromisoformat(text).timestamp() * MICROSECONDS))

    def clock(self, us: int) -> Markup:
        """Day, hour and minute, in UTC."""
        text = rfc3339(us)
        return _TIME.format(text, f"{text[:10]} {text[11:19]}")

    def day(self, text: str) -> Markup:
        """The day of an RFC 3339 time."""
        return _TIME.format(text, text[:10])


def lasting(seconds: float) -> str:
    """How long something takes, in one unit."""
    size, unit = next(((_SIZES[unit], unit) for below, unit in _STEPS if seconds < below), (86_400, "day"))
    count = round(seconds / size)
    return f"{count} {unit}{'' if count == 1 else 's'}"


def distance(seconds: int) -> str:
    """In one unit; empty from 30 days on."""
    for below, unit in _STEPS:
        if abs(seconds) < below:
            count = abs(seconds) // _SIZES[unit]
            if unit == "second" and count < 10:
                return "just now"
            many = f"{count} {unit}{'' if count == 1 else 's'}"
            return f"{many} ago" if seconds >= 0 else f"in {many}"
    return ""

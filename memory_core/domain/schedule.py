"""When a schedule is due: an interval or a cron expression, and the slots that it cuts time into.

A slot is a boundary in UTC; the current one is the latest that is not in the future. Nothing here remembers anything:
the same time has the same slot, whoever asks and however often.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from memory_core import limits
from memory_core.clock import MICROSECONDS
from memory_core.errors import Invalid

OFF: Final = "off"

_EVERY = re.compile(r"every\s+([0-9]{1,9})\s*([smhd])", re.ASCII)
_UNITS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_ADVICE: Final = "write `every 15m` (s, m, h, d), `cron 30 3 * * *`, or `off`"


@dataclass(frozen=True, kw_only=True)
class Every:
    """An interval; its slots are whole multiples of it since the epoch."""

    text: str
    seconds: int

    def slot(self, now: int) -> int | None:
        """The latest boundary up to `now`, both UTC microseconds."""
        length = self.seconds * MICROSECONDS
        return now // length * length

    def next_slot(self, now: int) -> int | None:
        """The first boundary after `now`."""
        length = self.seconds * MICROSECONDS
        return (now // length + 1) * length


@dataclass(frozen=True, kw_only=True)
class Cron:
    """A cron expression in a time zone. An hour that the clocks skip or repeat is treated as Debian's cron treats it."""

    text: str
    expression: str
    timezone: str

    def slot(self, now: int) -> int | None:
        """The latest boundary up to `now`; None where there was none for decades."""
        # What looks back looks strictly back.
        return self._first(now // MICROSECONDS + 1, is_reverse=True)

    def next_slot(self, now: int) -> int | None:
        """The first boundary after `now`; None where there is none for decades."""
        return self._first(now // MICROSECONDS, is_reverse=False)

    def _first(self, seconds: int, *, is_reverse: bool) -> int | None:
        begin = datetime.fromtimestamp(seconds, tz=UTC).astimezone(ZoneInfo(self.timezone))
        moments: Iterator[Any] = CronSim(self.expression, begin, reverse=is_reverse)
        for moment in moments:
            return round(moment.timestamp()) * MICROSECONDS
        return None


Schedule = Every | Cron


def parse(text: str, timezone: str = "UTC") -> Schedule | None:
    """The schedule that a text says; None for `off`. Raises `Invalid` that says what to write instead."""
    words = " ".join(text.split())
    if words.lower() == OFF:
        return None
    if not words or len(words) > limits.SCHEDULE_MAX_CHARS:
        raise Invalid(f"{text[:64]!r} is no schedule; {_ADVICE}")
    kind, _, rest = words.partition(" ")
    if kind == "cron":
        return _cron(words, rest, timezone)
    match = _EVERY.fullmatch(words)
    if match is None:
        raise Invalid(f"{text[:64]!r} is no schedule; {_ADVICE}")
    seconds = int(match[1]) * _UNITS[match[2]]
    if not limits.SCHEDULE_MIN_SECONDS <= seconds <= limits.SCHEDULE_MAX_SECONDS:
        raise Invalid(f"{words!r}: an interval is at least 1s and at most 366d")
    return Every(text=words, seconds=seconds)


def check_timezone(name: str) -> str:
    """`name`, if it is a time zone. Raises `Invalid`."""
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise Invalid(f"{name[:64]!r} is no time zone; write one like UTC or Europe/Berlin") from None
    return name


def _cron(words: str, expression: str, timezone: str) -> Cron:
    if len(expression.split()) != 5:
        raise Invalid(f"{words!r}: a cron expression has five fields, as in `cron 30 3 * * *`")
    found = Cron(text=words, expression=expression, timezone=check_timezone(timezone))
    try:
        is_ever_due = found.next_slot(_SOME_DAY) is not None
    except (CronSimError, StopIteration) as error:
        raise Invalid(f"{words!r} is no cron expression: {error}") from None
    if not is_ever_due:
        raise Invalid(f"{words!r} is never due")
    return found


_SOME_DAY: Final = round(
    (datetime(2026, 1, 1, tzinfo=UTC) - datetime.fromtimestamp(0, tz=UTC)) / timedelta(microseconds=1)
)

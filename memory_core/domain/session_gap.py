"""How long it is since somebody worked on a project, in words that say what to make of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

_MINUTE_US = 60 * 1_000_000
_HOUR_US = 60 * _MINUTE_US
_DAY_US = 24 * _HOUR_US


class Bucket(StrEnum):
    FRESH = "fresh"
    TODAY = "today"
    RECENT = "recent"
    DORMANT = "dormant"
    STALE = "stale"
    #: Nobody ever worked on it.
    NONE = "none"


#: Buckets with their ends (exclusive, microseconds) and what each means for who begins now.
_ENDS = (
    (Bucket.FRESH, _HOUR_US, "less than an hour: go on where it stopped"),
    (Bucket.TODAY, _DAY_US, "less than a day: what was last said still holds"),
    (Bucket.RECENT, 7 * _DAY_US, "less than a week: look at what changed last before you go on"),
    (Bucket.DORMANT, 30 * _DAY_US, "less than a month: check what pages say of how things stand"),
)
_STALE = (
    "a month and more: what is said of how things stand may be long out of date; trust decisions, check facts"
)
_NONE = "nobody has worked on it before, as far as is known"


@dataclass(frozen=True, kw_only=True)
class Gap:
    bucket: Bucket
    description: str
    #: None: there was no session.
    hours_since_last: float | None = None


def gap_since(last_at: int | None, now: int) -> Gap:
    """The gap between two times, UTC microseconds; one that lies in the future (another machine's clock) is none at all."""
    if last_at is None:
        return Gap(bucket=Bucket.NONE, description=_NONE)
    passed = max(now - last_at, 0)
    hours = round(passed / _HOUR_US, 1)
    for bucket, end, description in _ENDS:
        if passed < end:
            return Gap(hours_since_last=hours, bucket=bucket, description=description)
    return Gap(hours_since_last=hours, bucket=Bucket.STALE, description=_STALE)


def ago(us: int) -> str:
    """A span of time as people say it: `3 hours ago`."""
    for size, name in ((_DAY_US, "day"), (_HOUR_US, "hour"), (_MINUTE_US, "minute")):
        if us >= size:
            count = us // size
            return f"{count} {name}{'' if count == 1 else 's'} ago"
    return "just now"

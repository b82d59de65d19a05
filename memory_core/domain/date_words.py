"""The dates that a question speaks of: `May 3, 2023`, `2023-05`, `in March`, `yesterday`, `two weeks ago`."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_MONTH = "|".join((*_MONTHS, *(f"{name[:3]}[.]?" for name in _MONTHS if name != "may"), "sept[.]?"))
_DAY = r"(?P<{}>\d{{1,2}})(?:st|nd|rd|th)?"
_ISO = re.compile(r"(?<!\d)(?P<year>(?:19|20)\d\d)-(?P<month>\d\d?)(?:-(?P<day>\d\d?))?(?!\d)")
_NAMED = re.compile(
    rf"(?:\b{_DAY.format('before')}(?:\s+of)?\s+)?\b(?P<month>{_MONTH})(?![a-z])"
    rf"(?:\s+{_DAY.format('behind')}(?!\d))?(?:,?\s+(?P<year>(?:19|20)\d\d))?",
    re.IGNORECASE,
)
_YEAR = re.compile(r"(?<![\d-])(?:19|20)\d\d(?![\d-])")
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7}
_AGO = re.compile(
    r"\b(?P<count>\d{1,3}|a|an|one|two|three|four|five|six|seven)\s+(?P<unit>day|week|month|year)s?\s+ago\b",
    re.IGNORECASE,
)
_LAST = re.compile(r"\b(?P<which>last|this)\s+(?P<unit>week|month|year)\b", re.IGNORECASE)
_NEAR = {"today": 0, "yesterday": 1}
_WORDS = re.compile(rf"\b(?:{'|'.join(_NEAR)})\b", re.IGNORECASE)
_DAY_US = 86_400 * 1_000_000
_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}


@dataclass(frozen=True, kw_only=True)
class Period:
    """From the first to the last day, both in it. `slack_days`: how far beside it a date still counts for about a third."""

    first: date
    last: date
    slack_days: int

    def nearness(self, day: date) -> float:
        """1 inside, falling towards 0 with the distance."""
        apart = max((self.first - day).days, (day - self.last).days, 0)
        return math.exp(-apart / self.slack_days)


@dataclass(frozen=True, kw_only=True)
class Dates:
    """What a question says of time; a period without a year stands for that of each year."""

    periods: tuple[Period, ...] = ()
    #: (month, day or 0), of any year.
    yearless: tuple[tuple[int, int], ...] = ()

    def spans(self, now: int) -> list[tuple[int, int]]:
        """From when and before when each period is, UTC microseconds; of one without a year the last two that have begun by `now`."""
        today = datetime.fromtimestamp(now / 1_000_000, tz=UTC).date()
        begun = [period for period in _of_years(self.yearless, today.year) if period.first <= today]
        last = sorted(begun, key=lambda period: period.first)[-2:]
        return [(_begin(period.first), _begin(period.last) + _DAY_US) for period in (*self.periods, *last)]

    def __bool__(self) -> bool:
        return bool(self.periods or self.yearless)

    def nearness(self, moment: int) -> float:
        """How near a time (UTC microseconds) is to what is spoken of, from 0 to 1."""
        try:
            day = datetime.fromtimestamp(moment / 1_000_000, tz=UTC).date()
        except (ValueError, OverflowError, OSError):
            return 0.0
        periods = [*self.periods, *_of_years(self.yearless, day.year)]
        return max((period.nearness(day) for period in periods), default=0.0)


def dates_in(text: str, now: int) -> Dates:
    """The dates that a text speaks of; relative ones are counted from `now` (UTC microseconds)."""
    today = datetime.fromtimestamp(now / 1_000_000, tz=UTC).date()
    periods: list[Period] = []
    yearless: list[tuple[int, int]] = []
    for found in _ISO.finditer(text):
        periods += _period(int(found["year"]), int(found["month"]), int(found["day"] or 0))
    for found in _NAMED.finditer(text):
        day, year = int(found["before"] or found["behind"] or 0), found["year"]
        if _is_verb(found):
            continue
        month = _month(found["month"])
        if year:
            periods += _period(int(year), month, day)
        else:
            yearless.append((month, day))
    if not periods and not yearless:
        periods += [period for found in _YEAR.finditer(text) for period in _period(int(found.group()), 0, 0)]
    return Dates(periods=(*periods, *_relative(text, today)), yearless=tuple(yearless))


def without_dates(text: str) -> str:
    """What else a text says."""
    for pattern in (_ISO, _AGO, _LAST, _WORDS):
        text = pattern.sub(" ", text)
    text = _NAMED.sub(lambda found: found.group() if _is_verb(found) else " ", text)
    return _YEAR.sub(" ", text)


def _is_verb(found: re.Match[str]) -> bool:
    """ "may" and "march", where neither a day nor a year nor a capital says otherwise."""
    is_alone = not (found["before"] or found["behind"] or found["year"])
    return is_alone and found["month"].lower() in ("may", "mar", "march") and not found["month"][0].isupper()


def _begin(day: date) -> int:
    """Its midnight, UTC microseconds."""
    return (day - date(1970, 1, 1)).days * _DAY_US


def _relative(text: str, today: date) -> list[Period]:
    made: list[Period] = []
    for word, days in _NEAR.items():
        if re.search(rf"\b{word}\b", text, re.IGNORECASE):
            day = today - timedelta(days=days)
            made.append(Period(first=day, last=day, slack_days=2))
    for found in _AGO.finditer(text):
        size = _DAYS[found["unit"].lower()]
        count = _NUMBERS.get(found["count"].lower()) or int(found["count"])
        day = today - timedelta(days=size * count)
        made.append(Period(first=day, last=day, slack_days=max(size // 2, 2)))
    for found in _LAST.finditer(text):
        size = _DAYS[found["unit"].lower()]
        if found["which"].lower() == "this":
            made.append(Period(first=today - timedelta(days=size), last=today, slack_days=max(size // 4, 2)))
        else:
            first = today - timedelta(days=2 * size)
            made.append(Period(first=first, last=first + timedelta(days=size), slack_days=max(size // 4, 2)))
    return made


def _month(name: str) -> int:
    return next(number for number, full in enumerate(_MONTHS, 1) if full.startswith(name.lower()[:3]))


def _period(year: int, month: int, day: int) -> Sequence[Period]:
    """A day, a month (`day` 0) or a year (both 0); nothing for what is no date."""
    try:
        if day:
            return [Period(first=date(year, month, day), last=date(year, month, day), slack_days=7)]
        if month:
            last = date(year + month // 12, month % 12 + 1, 1) - timedelta(days=1)
            return [Period(first=date(year, month, 1), last=last, slack_days=14)]
        return [Period(first=date(year, 1, 1), last=date(year, 12, 31), slack_days=30)]
    except ValueError:
        return []


def _of_years(yearless: Sequence[tuple[int, int]], year: int) -> list[Period]:
    return [
        period
        for month, day in yearless
        for near in (year - 1, year, year + 1)
        if 1 < near < 9_998
        for period in _period(near, month, day)
    ]

"""Intervals and cron expressions: which slot a moment belongs to."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_core.clock import MICROSECONDS
from memory_core.domain.schedule import check_timezone, parse
from memory_core.errors import Invalid


def us(text: str) -> int:
    return round(datetime.fromisoformat(text).astimezone(UTC).timestamp()) * MICROSECONDS


def shown(moment: int | None, zone: str = "UTC") -> str:
    assert moment is not None
    return datetime.fromtimestamp(moment / MICROSECONDS, tz=ZoneInfo(zone)).isoformat()


@pytest.mark.parametrize(
    ("text", "slot", "following"),
    [
        ("every 15m", "2026-05-06T10:30:00+00:00", "2026-05-06T10:45:00+00:00"),
        ("every 90s", "2026-05-06T10:43:30+00:00", "2026-05-06T10:45:00+00:00"),
        ("every  2h", "2026-05-06T10:00:00+00:00", "2026-05-06T12:00:00+00:00"),
        ("every 1d", "2026-05-06T00:00:00+00:00", "2026-05-07T00:00:00+00:00"),
        ("cron 30 3 * * *", "2026-05-06T03:30:00+00:00", "2026-05-07T03:30:00+00:00"),
        ("cron 44 10 * * *", "2026-05-06T10:44:00+00:00", "2026-05-07T10:44:00+00:00"),
        ("cron */10 * * * *", "2026-05-06T10:40:00+00:00", "2026-05-06T10:50:00+00:00"),
        ("cron 0 4 * * MON", "2026-05-04T04:00:00+00:00", "2026-05-11T04:00:00+00:00"),
        ("cron 0 0 29 2 *", "2024-02-29T00:00:00+00:00", "2028-02-29T00:00:00+00:00"),
    ],
)
def test_the_slot_is_the_latest_boundary_and_the_next_is_after_it(text: str, slot: str, following: str):
    schedule = parse(text)
    assert schedule is not None

    assert shown(schedule.slot(us("2026-05-06T10:44:00+00:00"))) == slot
    assert shown(schedule.next_slot(us("2026-05-06T10:44:00+00:00"))) == following


def test_a_time_zone_is_that_of_the_cron_expression():
    schedule = parse("cron 30 3 * * *", "Europe/Berlin")
    assert schedule is not None

    assert shown(schedule.slot(us("2026-01-06T02:30:00+00:00"))) == "2026-01-06T02:30:00+00:00"
    assert shown(schedule.slot(us("2026-07-06T02:30:00+00:00"))) == "2026-07-06T01:30:00+00:00"


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC"])
@pytest.mark.parametrize("expression", ["cron 30 2 * * *", "cron 15 * * * *", "cron 0 3 * * *"])
def test_the_days_when_clocks_change_have_each_slot_once(zone: str, expression: str):
    schedule = parse(expression, zone)
    assert schedule is not None
    forwards, moment = [], us("2026-03-01T00:00:00+00:00")
    end = us("2026-04-15T00:00:00+00:00")
    while (moment := schedule.next_slot(moment) or end) < end:
        forwards.append(moment)

    assert forwards == sorted(set(forwards))
    backwards = {schedule.slot(slot + 59 * MICROSECONDS) for slot in forwards}
    assert backwards == set(forwards)


@settings(deadline=None, max_examples=200)
@given(
    now=st.integers(min_value=0, max_value=us("2099-01-01T00:00:00+00:00")),
    text=st.sampled_from(
        [
            "every 1s",
            "every 7m",
            "every 13h",
            "every 3d",
            "cron 5 4 * * *",
            "cron 0 */6 1-7 * *",
            "cron 59 23 31 * *",
        ]
    ),
)
def test_any_moment_lies_between_its_slot_and_the_next(now: int, text: str):
    schedule = parse(text)
    assert schedule is not None
    slot, following = schedule.slot(now), schedule.next_slot(now)

    assert slot is None or slot <= now
    assert following is not None
    assert now < following
    assert schedule.slot(following) == following
    if slot is not None:
        assert schedule.next_slot(slot) == following


def test_off_is_no_schedule():
    assert parse(" OFF ") is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "15m",
        "every",
        "every m",
        "every 0m",
        "every -5m",
        "every 5w",
        "every 400d",
        "every 1.5h",
        "every ٣m",
        "cron",
        "cron 30 3 * *",
        "cron 61 * * * *",
        "cron * * * * * *",
        "cron 0 0 31 2 *",
        "cron " + "1," * 100 + "1 * * * *",
        "sometimes",
    ],
)
def test_what_is_no_schedule_is_refused(text: str):
    with pytest.raises(Invalid):
        parse(text)


@pytest.mark.parametrize("name", ["Mars/Olympus", "", "../etc/passwd", "Europe/\0"])
def test_what_is_no_time_zone_is_refused(name: str):
    with pytest.raises(Invalid):
        check_timezone(name)

"""Which days a question speaks of, and how near another day is to them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.domain.date_words import Dates, Period, dates_in, without_dates

DAY_US = 86_400 * 1_000_000
#: A Saturday.
NOW = int(datetime(2031, 5, 17, 12, tzinfo=UTC).timestamp() * 1_000_000)
days = st.dates(date(1975, 1, 1), date(2090, 12, 31))


def us(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, 9, tzinfo=UTC).timestamp() * 1_000_000)


def spoken(text: str, now: int = NOW) -> list[tuple[str, str]]:
    """First and last day of each period."""
    return [(str(period.first), str(period.last)) for period in dates_in(text, now).periods]


@pytest.mark.parametrize(
    ("text", "periods"),
    [
        ("on 2031-03-02 we", [("2031-03-02", "2031-03-02")]),
        ("in 2031-02", [("2031-02-01", "2031-02-28")]),
        ("in 2028-02 at last", [("2028-02-01", "2028-02-29")]),
        ("March 2, 2031", [("2031-03-02", "2031-03-02")]),
        ("2nd of March 2031", [("2031-03-02", "2031-03-02")]),
        ("Dec. 2030", [("2030-12-01", "2030-12-31")]),
        ("sept 2030", [("2030-09-01", "2030-09-30")]),
        ("what was in 2029?", [("2029-01-01", "2029-12-31")]),
        # No such day: its year.
        ("February 30, 2031", [("2031-01-01", "2031-12-31")]),
        ("today", [("2031-05-17", "2031-05-17")]),
        ("Yesterday evening", [("2031-05-16", "2031-05-16")]),
        ("two weeks ago", [("2031-05-03", "2031-05-03")]),
        ("10 days ago", [("2031-05-07", "2031-05-07")]),
        ("this week", [("2031-05-10", "2031-05-17")]),
        ("last week", [("2031-05-03", "2031-05-10")]),
    ],
)
def test_the_days_that_a_question_names(text: str, periods: list[tuple[str, str]]):
    assert spoken(text) == periods


@pytest.mark.parametrize(
    "text",
    [
        "",
        "may I march on?",
        "version 12031-03-02x",
        "ticket 120310",
        "2031-13-40",
        "yesterdays",
        "a decade",
        "1234 days ago",
    ],
)
def test_what_is_no_date_is_none(text: str):
    assert not dates_in(text, NOW)


def test_a_month_without_a_year_is_that_of_each_year():
    found = dates_in("What did we do in May?", NOW)

    assert (found.periods, found.yearless) == ((), ((5, 0),))
    assert found.nearness(us(date(2024, 5, 30))) == 1.0
    assert found.nearness(us(date(2031, 5, 1))) == 1.0
    assert found.nearness(us(date(2031, 11, 1))) < 0.01


def test_the_turn_of_a_year_is_near():
    assert dates_in("December 31", NOW).nearness(us(date(2031, 1, 2))) > 0.5
    assert dates_in("January 1", NOW).nearness(us(date(2030, 12, 30))) > 0.5


@given(days)
def test_a_day_is_read_back_however_it_is_written(day: date):
    month = f"{day:%B}"
    for text in (
        f"on {day.isoformat()}",
        f"{month} {day.day}, {day.year}",
        f"{day.day} {month} {day.year}",
        f"the {day.day}th of {month} {day.year}",
        f"{month[:3]} {day.day}, {day.year}" if month != "May" else day.isoformat(),
    ):
        assert spoken(text) == [(str(day), str(day))], text


@given(days, st.integers(0, 4_000))
def test_nearness_is_whole_inside_and_falls_with_the_distance(day: date, apart: int):
    period = Period(first=day, last=day + timedelta(days=3), slack_days=7)

    assert period.nearness(day) == period.nearness(period.last) == 1.0
    before, behind = (period.nearness(day - timedelta(days=n)) for n in (apart, apart + 1))
    assert 0.0 <= behind < before <= 1.0 or before == behind == 0.0
    assert period.nearness(day - timedelta(days=apart)) == period.nearness(
        period.last + timedelta(days=apart)
    )


@given(st.text(max_size=300), st.integers(-(2**62), 2**62))
def test_no_text_and_no_moment_is_an_error(text: str, moment: int):
    assert 0.0 <= dates_in(text, NOW).nearness(moment) <= 1.0


@given(
    st.lists(
        st.sampled_from(
            [
                "2031-05",
                "May",
                "3rd",
                "last",
                "week",
                "999",
                "days",
                "ago",
                "year",
                "0",
                "1900",
                "99",
                "Feb",
                "31",
            ]
        ),
        max_size=8,
    ).map(" ".join),
    days,
)
def test_no_order_of_date_words_is_an_error_at_any_time(text: str, today: date):
    assert isinstance(dates_in(text, us(today)), Dates)


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("What happened on March 2, 2031?", "What happened on ?"),
        ("What did Wanda say yesterday?", "What did Wanda say ?"),
        ("may we march two weeks ago", "may we march"),
        ("the 2031-03-02 release of last month", "the release of"),
        ("release 2031", "release"),
    ],
)
def test_what_else_a_question_says(text: str, rest: str):
    assert " ".join(without_dates(text).split()) == rest


def test_a_period_spans_its_days_and_one_without_a_year_those_that_have_begun():
    (one,) = dates_in("yesterday", NOW).spans(NOW)
    assert one == (
        us(date(2031, 5, 16)) - 9 * 3_600 * 1_000_000,
        us(date(2031, 5, 17)) - 9 * 3_600 * 1_000_000,
    )
    june = [
        datetime.fromtimestamp(first / 1e6, tz=UTC).date() for first, _ in dates_in("June", NOW).spans(NOW)
    ]
    assert june == [date(2030, 6, 1)] or june == [date(2029, 6, 1), date(2030, 6, 1)]
    assert [first < behind for first, behind in dates_in("in May", NOW).spans(NOW)] == [True, True]


@given(days, st.sampled_from(["on {0}", "{1} {2}, {3}", "{1} {3}", "in {3}"]))
def test_a_span_holds_the_moment_that_is_near(day: date, form: str):
    found = dates_in(form.format(day.isoformat(), f"{day:%B}", day.day, day.year), NOW)

    ((first, behind),) = found.spans(NOW)
    assert first <= us(day) < behind
    assert found.nearness(us(day)) == 1.0

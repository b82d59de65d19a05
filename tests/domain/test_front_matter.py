"""When a page stops being true: read from what people write, written back as the same moment."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.domain.front_matter import expiry_from, expiry_text
from memory_core.errors import Invalid

zones = st.integers(-23 * 60, 23 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(st.datetimes(timezones=zones))
def test_a_moment_in_any_zone_comes_back_as_the_same_moment_or_is_refused(moment: datetime):
    try:
        us = expiry_from(moment.isoformat())
    except Invalid:
        with pytest.raises(OverflowError):
            moment.astimezone(UTC)
        return

    assert datetime.fromisoformat(expiry_text(us)) == moment


@given(st.dates())
def test_a_day_is_its_end(day):
    text = expiry_text(expiry_from(day.isoformat()))

    assert text == f"{day.isoformat()}T23:59:59.999999Z"


@pytest.mark.parametrize("text", ["9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+12:00"])
def test_a_moment_that_no_calendar_has_is_refused(text: str):
    with pytest.raises(Invalid, match="expires_at is a time like"):
        expiry_from(text)

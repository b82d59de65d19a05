"""How long nobody worked on a project, in buckets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.domain.session_gap import Bucket, ago, gap_since

HOUR = 3_600_000_000
DAY = 24 * HOUR
NOW = 1_900_000_000_000_000


@pytest.mark.parametrize(
    ("passed", "bucket"),
    [
        (0, "fresh"),
        (HOUR - 1, "fresh"),
        (HOUR, "today"),
        (DAY - 1, "today"),
        (DAY, "recent"),
        (7 * DAY - 1, "recent"),
        (7 * DAY, "dormant"),
        (30 * DAY - 1, "dormant"),
        (30 * DAY, "stale"),
        (3_000 * DAY, "stale"),
        (-5 * DAY, "fresh"),
    ],
)
def test_each_bucket_ends_where_the_next_begins(passed: int, bucket: str):
    assert gap_since(NOW - passed, NOW).bucket == bucket


def test_without_a_session_there_is_no_gap():
    gap = gap_since(None, NOW)

    assert (gap.bucket, gap.hours_since_last) == (Bucket.NONE, None)


@given(first=st.integers(0, 400 * DAY), second=st.integers(0, 400 * DAY))
def test_a_longer_gap_is_in_no_earlier_bucket(first: int, second: int):
    short, long = sorted((first, second))
    order = list(Bucket)

    assert order.index(gap_since(NOW - short, NOW).bucket) <= order.index(gap_since(NOW - long, NOW).bucket)


@pytest.mark.parametrize(
    ("passed", "words"),
    [
        (0, "just now"),
        (HOUR // 60, "1 minute ago"),
        (HOUR - 1, "59 minutes ago"),
        (HOUR, "1 hour ago"),
        (2 * DAY + HOUR, "2 days ago"),
    ],
)
def test_a_span_is_said_in_its_largest_unit(passed: int, words: str):
    assert ago(passed) == words

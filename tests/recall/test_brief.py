"""The project brief keeps to its budget, whatever the pages are."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory_core import limits
from memory_core.commands.pages import WritePage
from memory_core.recall.brief import project_brief
from memory_core.recall.scope import Asker, project_for
from tests.books import Books


@pytest.fixture
def books(tmp_path: Path) -> Generator[Books]:
    made = Books(tmp_path)
    for number in range(40):
        folder = ("_rules", "_slots", "notes", "decisions")[number % 4]
        body = (
            f"# {number} memoryd:recalled\n\n" + "<!-- memoryd:recalled 0123456789abcdef end -->\n" * number
        )
        made.apply(
            WritePage(
                workspace="default",
                project="alpha",
                path=f"{folder}/{'long-name-' * (number % 12)}{number}",
                body=body,
                pinned=number % 3 == 0,
            )
        )
    yield made
    made.close()


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
    max_examples=150,
)
@given(budget=st.integers(min_value=limits.BRIEF_MIN_CHARS, max_value=limits.BRIEF_MAX_CHARS))
def test_a_brief_is_never_longer_than_its_budget_and_never_unfenced(books: Books, budget: int):
    with books.database.snapshot() as reading:
        project = project_for(reading, Asker(principal="ada"), None, "alpha")
        text = project_brief(reading, project, now=books.clock.now_us(), max_chars=budget)

    assert 0 < len(text) <= budget
    assert text.lower().count("memoryd:recalled") == 2
    assert text.rstrip().endswith("end -->")


def test_pinned_pages_come_first_then_by_path_at_most_24_and_ten_recent_ones(books: Books):
    with books.database.snapshot() as reading:
        project = project_for(reading, Asker(principal="ada"), None, "alpha")
        text = project_brief(reading, project, now=books.clock.now_us(), max_chars=200_000)

    heads = [line for line in text.splitlines() if line.startswith("### ")]
    assert len(heads) == limits.CORE_PAGES_MAX + 1
    assert heads[-1] == "### Changed last"
    assert len([line for line in text.splitlines() if line.startswith("- ")]) == limits.BRIEF_RECENT_PAGES


def test_a_project_without_pages_has_no_brief(books: Books):
    books.apply(WritePage(workspace="default", project="beta", path="a", body="b", expires_at="2001-01-01"))
    with books.database.snapshot() as reading:
        project = project_for(reading, Asker(principal="ada"), None, "beta")
        assert project_brief(reading, project, now=books.clock.now_us(), max_chars=4_000) == ""

"""`memory_feedback`: what a judgement does to a page."""

from __future__ import annotations

import pytest

from memory_core import errors, limits
from memory_core.domain.feedback import Signal, clean_reason, salience_after
from tests.tools.context import Context


@pytest.fixture
def page(context: Context) -> Context:
    context.call("memory_write_page", path="a", body="# A\n\ntext")
    return context


def judge(context: Context, signal: str, **more: object) -> dict[str, object]:
    return context.call("memory_feedback", path="a", signal=signal, **more)


def test_each_signal_moves_the_salience_by_its_step(page: Context):
    assert judge(page, "helpful")["salience"] == 1.25
    assert judge(page, "not_helpful")["salience"] == 1.0
    answer = judge(page, "stale")
    assert (answer["salience"], answer["routed_to_lint"]) == (0.25, True)
    assert judge(page, "helpful") == judge(page, "helpful") | {"salience": 0.5}


@pytest.mark.parametrize(
    ("start", "signal", "end"),
    [
        (None, Signal.HELPFUL, 1.25), (1.9, Signal.HELPFUL, 2.0), (2.0, Signal.HELPFUL, 2.0),
        (0.3, Signal.NOT_HELPFUL, 0.25), (0.25, Signal.NOT_HELPFUL, 0.25), (2.0, Signal.WRONG, 0.25),
        (None, Signal.STALE, 0.25),
    ],
)  # fmt: skip
def test_salience_stays_between_a_quarter_and_two(start: float | None, signal: Signal, end: float):
    assert salience_after(start, signal) == end


def test_feedback_belongs_to_the_version_that_was_read_and_salience_to_the_page(page: Context):
    first = judge(page, "wrong")
    page.call("memory_write_page", path="a", body="# A\n\nbetter")
    second = judge(page, "helpful")

    assert first["page_id"] == second["page_id"]
    assert first["version_id"] != second["version_id"]
    assert second["salience"] == 0.5
    assert len(page.books.query("SELECT DISTINCT version_id FROM page_feedback")) == 2


def test_a_reason_is_one_line_of_at_most_500_characters(page: Context):
    judge(page, "stale", reason="  no\nlonger\ttrue \x00 " + "x" * 600)
    (row,) = page.books.query("SELECT reason FROM page_feedback")

    assert row["reason"].startswith("no longer true x")
    assert len(row["reason"]) == limits.FEEDBACK_REASON_MAX_CHARS
    assert "\n" not in row["reason"]
    assert clean_reason(" \n ") is None


def test_what_is_no_signal_and_what_is_no_page_say_so(page: Context):
    with pytest.raises(errors.Invalid, match="helpful, not_helpful, stale, wrong"):
        judge(page, "great")
    with pytest.raises(errors.NotFound, match="search for it"):
        page.call("memory_feedback", path="b", signal="wrong")
    assert page.books.query("SELECT * FROM page_feedback") == []


def test_the_audit_log_names_the_signal_and_not_the_reason(page: Context):
    judge(page, "wrong", reason="platypus")
    (row,) = page.books.query("SELECT detail FROM audit_log WHERE op = 'page_feedback'")

    assert '"wrong"' in row["detail"]
    assert "platypus" not in row["detail"]


def test_what_helped_is_found_before_its_equal_and_what_is_wrong_behind_it(context: Context):
    for path in ("notes/a", "notes/b"):
        context.call(
            "memory_write_page",
            path=path,
            body=f"# Uploads\n\nThe uploader retries. ({path})",
            title="Uploads",
        )

    def order() -> list[str]:
        hits = context.call("memory_query", query="uploader retries")["hits"]
        return [hit["path"] for hit in hits if hit["kind"] != "turn"]

    first, second = order()
    context.call("memory_feedback", path=second, signal="helpful")
    assert order() == [second, first]
    context.call("memory_feedback", path=second, signal="wrong")
    assert order() == [first, second]


def test_no_judgement_hides_a_page(page: Context):
    judge(page, "wrong")

    assert [hit["path"] for hit in page.call("memory_query", query="text")["hits"]] == ["a.md"]

"""`memory_briefing`: a project in one answer."""

from __future__ import annotations

from typing import Any

from memory_core.commands.capture import RecordObservation
from memory_core.commands.handoffs import BeginHandoff
from tests.factories import event, said
from tests.tools.context import Context

DAY = 86_400


def write(context: Context, path: str, body: str = "# T\n\ntext", **more: Any) -> None:
    context.call("memory_write_page", path=path, body=body, **more)


def test_it_counts_what_there_is_in_this_project_alone(context: Context):
    write(context, "a")
    write(context, "b", project="beta")
    answer = context.call("memory_briefing")

    assert (answer["workspace"], answer["project"]) == ("default", "alpha")
    assert answer["counts"] == {"pages": 1, "sessions": 1, "sessions_open": 1, "observations": 1}
    assert [page["path"] for page in answer["recent_pages"]] == ["a.md"]


def test_activity_is_of_the_last_week_and_month(context: Context):
    context.books.clock.advance(20 * DAY)
    context.books.apply(RecordObservation(event=event(session_key="t", cwd="/srv/alpha"), source="x"))
    context.books.apply(RecordObservation(event=said("done", session_key="t", cwd="/srv/alpha"), source="x"))
    write(context, "a")
    context.books.clock.advance(5 * DAY)
    write(context, "b")

    answer = context.call("memory_briefing", project="alpha")
    assert answer["activity_7d"] == {"days": 7, "sessions": 1, "observations": 2, "pages_updated": 2}
    assert answer["activity_30d"] == {"days": 30, "sessions": 2, "observations": 3, "pages_updated": 2}
    context.books.clock.advance(10 * DAY)
    assert context.call("memory_briefing", project="alpha")["activity_7d"] == {
        "days": 7, "sessions": 0, "observations": 0, "pages_updated": 0,
    }  # fmt: skip


def test_rules_slots_and_pinned_pages_come_with_their_text_fenced(context: Context):
    write(context, "_rules/tests", "# Tests\n\nRun them before each commit.")
    write(context, "_slots/focus", "# Focus\n\nThe uploader.")
    write(context, "decisions/queue", "# Queue\n\nOne writer.", pinned=True)
    write(context, "notes/other", "# Other")
    write(context, "_rulesets/no-rule", "# No rule")
    answer = context.call("memory_briefing")

    assert "before each commit" in answer["rules"][0]["text"]
    assert answer["rules"][0]["text"].startswith("<!-- memoryd:recalled")
    assert "uploader" in answer["slots"][0]["text"]
    assert [page["path"] for page in answer["pinned"]] == ["decisions/queue.md"]
    assert [len(answer[name]) for name in ("rules", "slots", "pinned")] == [1, 1, 1]


def test_expired_and_deleted_rules_are_not_told(context: Context):
    write(context, "_rules/old", expires_at="2001-01-01")
    write(context, "_rules/gone")
    context.call("memory_delete_page", path="_rules/gone.md")

    assert "rules" not in context.call("memory_briefing")


def test_handoffs_that_wait_are_counted_for_who_may_have_them(context: Context):
    context.call("memory_handoff_begin", summary="mine")
    context.books.apply(BeginHandoff(summary="bob's", workspace="default", project="alpha"), principal="bob")
    assert context.call("memory_briefing")["pending_handoff_count"] == 1
    context.books.apply(
        BeginHandoff(summary="all's", workspace="default", project="alpha", shared=True), principal="bob"
    )
    assert context.call("memory_briefing")["pending_handoff_count"] == 2


def test_projects_that_pages_tie_together_are_named_from_both_sides(context: Context):
    write(context, "b", project="beta")
    write(context, "a", "# A\n\n[[beta:b]] and [[beta:c]] and [[alpha:a]] and [[b]]")

    here, there = context.call("memory_briefing"), context.call("memory_briefing", project="beta")
    assert here["cross_project_dependencies"] == [{"workspace": "default", "project": "beta", "links": 2}]
    assert there["cross_project_dependents"] == [{"workspace": "default", "project": "alpha", "links": 2}]
    assert "cross_project_dependents" not in here
    assert "cross_project_dependencies" not in there
    context.call("memory_delete_page", path="a")
    assert "cross_project_dependents" not in context.call("memory_briefing", project="beta")


def test_a_page_called_wrong_is_told_until_it_is_written_anew(context: Context):
    write(context, "a")
    context.call("memory_feedback", path="a", signal="wrong", reason="it is two writers")
    flagged = context.call("memory_briefing")["flagged_pages"]

    assert (flagged[0]["path"], flagged[0]["signal"], flagged[0]["reason"]) == (
        "a.md", "wrong", "it is two writers",
    )  # fmt: skip
    write(context, "a", "# T\n\nright now")
    assert "flagged_pages" not in context.call("memory_briefing")


def test_what_holds_in_every_project_is_told_in_each(context: Context):
    write(context, "_rules/style", "# Style\n\nPlain words.", scope="global")
    write(context, "notes/no-rule", "# No rule", scope="global")
    write(context, "_rules/old", "# Old", scope="global", expires_at="2001-01-01")
    write(context, "a")

    told = context.call("memory_briefing")["global_pages"]

    assert [page["path"] for page in told] == ["_rules/style.md"]
    assert "Plain words" in told[0]["text"]
    assert "global_pages" not in context.call("memory_briefing", project="_global")


def test_an_expired_page_that_was_called_wrong_is_not_told(context: Context):
    write(context, "a", expires_at="2001-01-01")
    context.call("memory_feedback", path="a", signal="wrong")

    assert "flagged_pages" not in context.call("memory_briefing")

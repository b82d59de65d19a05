"""An agent writes a page whose file somebody had just edited: nothing is lost, and the agent is told."""

from __future__ import annotations

from typing import Any

import pytest

from memory_core.errors import Conflict
from memory_core.wiki.outbox import Installer
from tests.tools.context import Context

FILE = "default/alpha/notes/a.md"


@pytest.fixture
def context(context: Context, monkeypatch: pytest.MonkeyPatch) -> Context:
    """The writer puts files in place while the tool waits."""
    books = context.books
    context.call("memory_write_page", path="notes/a.md", body="# A\n\nfirst\n", project="alpha")
    books.install()
    monkeypatch.setattr(books.clock, "sleep", lambda _seconds: books.install())
    return context


def write(context: Context, text: str = "# A\n\nagent\n") -> dict[str, Any]:
    return context.call("memory_write_page", path="notes/a.md", body=text, project="alpha")


def newest(context: Context) -> Any:
    return context.call("memory_read_page", path="notes/a.md", project="alpha")


def test_a_write_over_an_edit_that_nobody_saw_says_that_the_edit_counts(context: Context):
    (context.books.wiki / FILE).write_text("# A\n\nby hand\n")

    answer = write(context)

    assert answer["status"] == "superseded"
    assert "edited by hand" in answer["note"]
    assert answer["version_id"] in answer["note"]
    read = newest(context)
    assert "by hand" in read["body"]
    assert read["version_id"] == answer["newest_version_id"] != answer["version_id"]
    kept = [row["content"] for row in context.books.query("SELECT content FROM page_versions ORDER BY seq")]
    assert ["first" in kept[0], "agent" in kept[1], "by hand" in kept[2]] == [True, True, True]


def test_a_write_over_a_file_that_is_as_it_was_says_nothing(context: Context):
    answer = write(context)

    assert "status" not in answer
    assert "note" not in answer


def test_writes_faster_than_the_files_are_no_edits(context: Context):
    write(context, "# A\n\nsecond\n")
    assert "status" not in write(context, "# A\n\nthird\n")


def test_a_file_that_somebody_made_where_a_new_page_goes_counts(context: Context):
    file = context.books.wiki / "default/alpha/notes/new.md"
    file.write_text("mine\n")

    answer = context.call("memory_write_page", path="notes/new.md", body="# New\n", project="alpha")

    assert answer["status"] == "superseded"
    assert file.read_text() == "mine\n"


def test_an_edit_that_is_not_taken_in_while_somebody_waits_is_told_all_the_same(
    context: Context, monkeypatch: pytest.MonkeyPatch
):
    waits: list[float] = []
    monkeypatch.setattr(context.books.clock, "sleep", waits.append)
    (context.books.wiki / FILE).write_text("# A\n\nby hand\n")

    answer = write(context)

    assert answer["status"] == "superseded"
    assert "newest_version_id" not in answer
    assert "wait a moment" in answer["note"]
    assert 1 <= sum(waits) <= 3


def test_an_edit_that_was_taken_out_and_not_yet_looked_at_is_waited_for(
    context: Context, monkeypatch: pytest.MonkeyPatch
):
    """The exchange is done, the taking in is not: the file holds the agent's text."""
    books = context.books

    def exchanged_only(step: str) -> None:
        if step == "exchange":
            (books.wiki / FILE).write_text("# A\n\nby hand\n")
        if step == "look":
            raise KeyboardInterrupt

    submit = context.submit

    def then_exchanged(command: object) -> Any:
        answer = submit(command)
        with pytest.raises(KeyboardInterrupt):
            books.install(Installer(books.wiki, hook=exchanged_only))
        return answer

    monkeypatch.setattr(context, "submit", then_exchanged)

    answer = write(context)

    assert answer["status"] == "superseded"
    assert "by hand" in newest(context)["body"]


def test_a_deletion_of_a_page_that_was_edited_unseen_is_not_answered_as_one(context: Context):
    (context.books.wiki / FILE).write_text("# A\n\nby hand\n")

    answer = context.call("memory_delete_page", path="notes/a.md", project="alpha")

    assert (answer["deleted"], answer["status"]) == (False, "superseded")
    assert "by hand" in newest(context)["body"]
    assert newest(context)["version_id"] == answer["newest_version_id"]


def test_a_file_that_can_be_no_page_refuses_write_and_deletion_by_name(context: Context):
    (context.books.wiki / FILE).write_bytes(b"caf\xe9\n")

    for tool, more in (("memory_write_page", {"body": "new\n"}), ("memory_delete_page", {})):
        with pytest.raises(Conflict, match=FILE):
            context.call(tool, path="notes/a.md", project="alpha", **more)

    assert (context.books.wiki / FILE).read_bytes() == b"caf\xe9\n"
    assert "first" in newest(context)["body"]

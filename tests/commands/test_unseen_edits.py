"""A committed write is answered as committed, whatever becomes of the look at its file."""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from memory_core.clock import FakeClock
from memory_core.commands.pages import DeletePage, WritePage
from memory_core.commands.unseen_edits import UnseenEdits
from memory_core.errors import StorageStopped, Unavailable
from memory_core.ids import id_text
from memory_core.wiki.outbox import Installer
from tests.books import Books


class Gone:
    """A database that cannot be asked."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def snapshot(self) -> Any:
        raise self._error


@pytest.mark.parametrize(
    "error", [StorageStopped("no disk"), Unavailable("away"), IsADirectoryError(21, "x")]
)
def test_a_look_that_fails_does_not_turn_a_committed_write_into_a_failure(tmp_path: Path, error: Exception):
    answer = {
        "version_id": id_text(bytes(16)),
        "page_id": id_text(bytes(16)),
        "changed": True,
        "path": "a.md",
    }

    edits = UnseenEdits(tmp_path, Gone(error), FakeClock())  # type: ignore[arg-type]

    assert edits.told(answer) == answer


class TakingTurns(FakeClock):
    """A clock on which the writer has a turn whenever somebody waits."""

    def __init__(self, turn: Callable[[], object]) -> None:
        super().__init__()
        self._turn = turn

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self._turn()


FILE = "default/alpha/notes/a.md"


@pytest.fixture
def books(tmp_path: Path) -> Generator[Books]:
    made = Books(tmp_path)
    made.apply(WritePage(workspace="default", project="alpha", path="notes/a.md", body="one\n"))
    made.install()
    yield made
    made.close()


def delete(books: Books) -> Any:
    return books.apply(DeletePage(workspace="default", project="alpha", path="notes/a.md"))


def told(books: Books, answer: Any, turn: Callable[[], object]) -> Any:
    return UnseenEdits(books.wiki, books.database, TakingTurns(turn)).told(answer)


def test_a_deletion_under_an_unseen_edit_says_that_the_page_is_there(books: Books):
    page_id = books.query("SELECT id FROM pages")[0]["id"]
    (books.wiki / FILE).write_text("by hand\n")

    answer = told(books, delete(books), books.install)

    assert (answer["deleted"], answer["existed"], answer["status"]) == (False, True, "superseded")
    assert "edited by hand" in answer["note"]
    newest = books.query("SELECT p.id, p.version_id FROM pages p WHERE p.tombstoned_at IS NULL")
    assert [(row["id"], id_text(row["version_id"])) for row in newest] == [
        (page_id, answer["newest_version_id"])
    ]
    assert (books.wiki / FILE).read_text() == "by hand\n"


def test_a_deletion_says_so_while_the_edit_is_still_being_taken_in(books: Books):
    (books.wiki / FILE).write_text("by hand\n")

    answer = told(books, delete(books), lambda: None)

    assert (answer["deleted"], answer["status"]) == (False, "superseded")
    assert "being taken in" in answer["note"]


def test_an_edit_saved_at_the_very_moment_of_the_deletion_is_told_too(books: Books):
    answer = delete(books)

    def turn() -> None:
        def hook(name: str) -> None:
            if name == "take":
                (books.wiki / FILE).write_text("by hand\n")

        books.install(Installer(books.wiki, hook=hook))

    # The file is away for a moment: what was taken out is not looked at yet.
    (books.wiki / FILE).rename(books.wiki / "aside")
    edits = UnseenEdits(books.wiki, books.database, TakingTurns(lambda: (back(), turn())))

    def back() -> None:
        if (books.wiki / "aside").exists():
            (books.wiki / "aside").rename(books.wiki / FILE)

    said = edits.told(answer)
    assert (said["deleted"], said["status"]) == (False, "superseded")


@pytest.mark.parametrize("is_installed", [True, False])
def test_a_plain_deletion_is_answered_as_one(books: Books, is_installed: bool):
    answer = delete(books)
    if is_installed:
        books.install()

    said = told(books, answer, books.install)

    assert said == answer
    assert said["deleted"] is True
    assert "status" not in said


def test_a_deletion_of_nothing_is_answered_as_one(books: Books):
    answer = books.apply(DeletePage(workspace="default", project="alpha", path="notes/none.md"))

    assert told(books, answer, books.install) == answer


def test_a_file_that_became_unfit_after_the_deletion_is_told(books: Books):
    answer = delete(books)
    (books.wiki / FILE).write_bytes(b"\xff")

    said = told(books, answer, books.install)

    assert (said["deleted"], said["status"]) == (True, "file_waits")
    assert FILE in said["note"]
    assert "UTF-8" in said["note"]


@pytest.mark.parametrize("what", ["unfit", "folder"])
def test_what_came_into_the_way_of_a_write_is_told(books: Books, what: str):
    answer = books.apply(WritePage(workspace="default", project="alpha", path="notes/a.md", body="two\n"))
    (books.wiki / FILE).unlink()
    if what == "folder":
        (books.wiki / FILE).mkdir()
    else:
        (books.wiki / FILE).write_bytes(b"\xff")

    said = told(books, answer, books.install)

    assert (said["version_id"], said["index_status"]) == (answer["version_id"], "file_waits")
    assert FILE in said["note"]

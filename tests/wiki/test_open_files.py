"""A program that has a page's file open when an agent writes the page: what it saves then is not lost."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TextIO

import pytest

from memory_core.commands.files import clean_leftovers
from memory_core.commands.pages import DeletePage, WritePage
from memory_core.wiki.outbox import Installer
from tests.books import Books
from tests.wiki.oracle import unexplained

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="file leases are Linux's")

FILE = "default/alpha/notes/a.md"


def write(books: Books, body: str) -> None:
    books.apply(WritePage(workspace="default", project="alpha", path="notes/a.md", body=body))


def chain(books: Books) -> list[str]:
    return [r["content"][r["body_start"] :] for r in books.query("SELECT * FROM page_versions ORDER BY seq")]


def on_disk(books: Books) -> str:
    return (books.wiki / FILE).read_text()


def rows(books: Books) -> int:
    return len(books.query("SELECT * FROM file_outbox"))


def is_at_rest(books: Books) -> bool:
    """No row, no leftover, and the file is its page's newest version."""
    return rows(books) == 0 and list(books.files()) == [FILE] and unexplained(books) == []


@pytest.fixture
def editor(books: Books) -> TextIO:
    """A page with a file that is open in a program, and a newer version of the page that is on disk already."""
    write(books, "zero\n")
    books.install()
    opened = (books.wiki / FILE).open("a")
    write(books, "one\n")
    books.install()
    return opened


def test_a_file_that_is_open_elsewhere_is_exchanged_at_once_and_its_row_waits(books: Books, editor: TextIO):
    assert on_disk(books).endswith("one\n")
    assert rows(books) == 1
    assert unexplained(books) == []

    editor.close()
    books.install()

    assert is_at_rest(books)
    assert chain(books) == ["zero\n", "one\n"]


def test_what_is_saved_into_a_file_that_was_exchanged_is_the_newest_version(books: Books, editor: TextIO):
    editor.write("mine\n")
    editor.close()
    books.install()

    assert is_at_rest(books)
    assert on_disk(books).endswith("zero\nmine\n")
    assert [body.splitlines()[-1] for body in chain(books)] == ["zero", "one", "mine"]


def test_a_program_that_saves_again_and_again_into_its_open_file_writes_into_the_page_again(
    books: Books, editor: TextIO
):
    editor.write("mine\n")
    editor.flush()
    books.install()
    editor.write("and more\n")
    editor.flush()

    assert on_disk(books).endswith("zero\nmine\nand more\n")
    editor.close()


def test_pages_are_written_while_a_file_stays_open(books: Books, editor: TextIO):
    for body in ("two\n", "three\n"):
        write(books, body)
        books.install()
        assert on_disk(books).endswith(body)
    editor.write("mine\n")
    editor.close()
    books.install()

    assert is_at_rest(books)
    assert on_disk(books).endswith("zero\nmine\n")
    assert [body.splitlines()[-1] for body in chain(books)] == ["zero", "one", "two", "three", "mine"]


def test_two_programs_with_two_states_open_lose_nothing_and_the_third_write_waits(
    books: Books, editor: TextIO
):
    second = (books.wiki / FILE).open("a")
    write(books, "two\n")
    books.install()
    write(books, "three\n")
    reports = books.install()

    assert [report.blocked for report in reports] == [1]
    assert on_disk(books).endswith("two\n")
    second.write("second\n")
    second.close()
    editor.write("first\n")
    editor.close()
    books.install()

    assert is_at_rest(books)
    last_lines = [body.splitlines()[-1] for body in chain(books)]
    assert last_lines[:4] == ["zero", "one", "two", "three"]
    assert sorted(last_lines[4:]) == ["first", "second"]


def test_two_programs_with_two_states_open_save_one_after_the_other(books: Books, editor: TextIO):
    second = (books.wiki / FILE).open("a")
    write(books, "two\n")
    books.install()
    for program in (editor, second, editor):
        program.write(f"{len(chain(books))}\n")
        program.flush()
        books.install()
    editor.close()
    second.close()
    books.install()

    assert is_at_rest(books)
    saved = "".join(chain(books))
    assert [number for number in ("3\n", "4\n", "5\n") if number not in saved] == []


def test_what_is_saved_into_a_deleted_page_brings_it_back(books: Books):
    write(books, "zero\n")
    books.install()
    with (books.wiki / FILE).open("a") as editor:
        books.apply(DeletePage(workspace="default", project="alpha", path="notes/a.md"))
        books.install()
        assert not (books.wiki / FILE).exists()
        editor.write("still needed\n")
    books.install()

    assert is_at_rest(books)
    assert on_disk(books).endswith("zero\nstill needed\n")


def test_a_restart_still_waits_for_the_open_file(books: Books, editor: TextIO):
    books.transact(lambda tx: clean_leftovers(tx, Installer(books.wiki)))
    books.install()
    editor.write("mine\n")
    editor.close()
    books.transact(lambda tx: clean_leftovers(tx, Installer(books.wiki)))
    books.install()

    assert is_at_rest(books)
    assert on_disk(books).endswith("zero\nmine\n")


@pytest.mark.parametrize("step", ["link", "exchange", "sync", "look", "done"])
def test_a_save_at_any_step_through_a_file_that_was_open_before_is_kept(books: Books, step: str):
    write(books, "zero\n")
    books.install()
    editor = (books.wiki / FILE).open("a")
    write(books, "one\n")

    def hook(name: str) -> None:
        if name == step and not editor.closed:
            editor.write("mine\n")
            editor.close()

    books.install(Installer(books.wiki, hook=hook))
    editor.close()
    books.install()

    assert any("mine" in body for body in chain(books))
    assert is_at_rest(books)


def test_a_file_that_is_only_read_elsewhere_is_not_waited_for(books: Books, tmp_path: Path):
    write(books, "zero\n")
    books.install()
    with (books.wiki / FILE).open():
        write(books, "one\n")
        books.install()

        assert is_at_rest(books)

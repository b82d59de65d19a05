"""A write onto a file that can be no page, or onto what is no file, is refused with the file's name; nothing of it is touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from memory_core.commands.restoring import RestorePage
from memory_core.domain.command import Refusal
from tests.books import Books
from tests.wiki.unfit import FILE, OBSTACLES, UNFIT, delete, obstacles, outbox, unfit, versions, write


@unfit
@pytest.mark.parametrize("is_known", [True, False])
def test_a_write_onto_a_file_that_can_be_no_page_is_refused(books: Books, what: str, is_known: bool):
    content, problem = UNFIT[what]
    write(books, "one\n", "notes/a.md" if is_known else "notes/b.md")
    books.install()
    (books.wiki / FILE).write_bytes(content)
    before = versions(books)

    for _ in range(2):
        answer = write(books, "two\n")
        assert isinstance(answer, Refusal)
        assert answer.code == "conflict"
        assert FILE in answer.message
        assert problem in answer.message
        books.install()

    assert (books.wiki / FILE).read_bytes() == content
    assert versions(books) == before
    assert outbox(books) == []


@unfit
def test_a_page_whose_file_can_be_no_page_is_not_deleted_nor_restored(books: Books, what: str):
    content, problem = UNFIT[what]
    write(books, "one\n")
    books.install()
    (books.wiki / FILE).write_bytes(content)

    restored = books.apply(
        RestorePage(workspace="default", project="alpha", path="notes/a.md", content="old\n", origin="here")
    )

    for answer in (delete(books), restored):
        assert isinstance(answer, Refusal)
        assert FILE in answer.message
        assert problem in answer.message
    books.install()
    assert (books.wiki / FILE).read_bytes() == content
    assert len(versions(books)) == 1


def test_what_is_put_right_can_be_written_again(books: Books):
    write(books, "one\n")
    books.install()
    (books.wiki / FILE).write_bytes(b"\xff")
    assert isinstance(write(books, "two\n"), Refusal)
    (books.wiki / FILE).unlink()

    assert not isinstance(write(books, "three\n"), Refusal)
    books.install()

    assert (books.wiki / FILE).read_text().endswith("three\n")


@obstacles
def test_a_write_onto_what_is_no_file_is_refused(books: Books, said: str):
    (books.wiki / FILE).parent.mkdir(parents=True)
    OBSTACLES[said](books.wiki / FILE)

    answer = write(books, "one\n")

    assert isinstance(answer, Refusal)
    assert FILE in answer.message
    assert said in answer.message
    assert books.query("SELECT * FROM pages") == []
    assert outbox(books) == []


def test_a_project_that_is_a_link_takes_no_page(books: Books, tmp_path: Path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (books.wiki / "default").mkdir()
    (books.wiki / "default/alpha").symlink_to(elsewhere)

    assert isinstance(write(books, "one\n"), Refusal)
    assert books.query("SELECT * FROM projects") == []
    assert list(elsewhere.iterdir()) == []

"""A file that can be no page, or something that is no file, comes into a page's place after the write: it stays, and is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from memory_core import limits
from memory_core.commands.pages import WritePage
from memory_core.commands.rendering import render_due
from memory_core.domain.command import Refusal
from memory_core.domain.wiki_file import NOT_TEXT
from memory_core.store import wiki_tasks
from memory_core.wiki.outbox import Installer
from tests.books import Books
from tests.wiki.house import House
from tests.wiki.unfit import FILE, OBSTACLES, UNFIT, delete, obstacles, outbox, unfit, versions, write

# --- between the write and its file ---


@unfit
@pytest.mark.parametrize("step", ["before", "write", "link", "exchange"])
@pytest.mark.parametrize("story", ["new", "change", "delete"])
def test_a_file_that_becomes_unfit_under_the_exchange_is_not_lost(
    books: Books, what: str, step: str, story: str
):
    content, problem = UNFIT[what]
    if story != "new":
        write(books, "zero\n")
        books.install()
    delete(books) if story == "delete" else write(books, "one\n")
    file = books.wiki / FILE
    if step == "before":
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    done: list[str] = []

    def hook(name: str) -> None:
        if name == ("take" if story == "delete" else step) and not done:
            done.append(name)
            file.write_bytes(content)

    before = versions(books)
    reports = [*books.install(Installer(books.wiki, hook=hook)), *books.install(), *books.install()]

    if step == "before" or done:
        assert file.read_bytes() == content
        assert versions(books) == before
        assert outbox(books) == [FILE]
        assert problem in reports[-1].obstacles[0].reason

        file.unlink()
        books.install()

    assert outbox(books) == []
    assert (not file.exists()) if story == "delete" else file.read_text().endswith("one\n")
    assert [name for name in books.files() if "/." in name] == []


@unfit
@pytest.mark.parametrize("story", ["new", "change"])
def test_a_file_that_becomes_unfit_when_it_is_in_place_stays(books: Books, what: str, story: str):
    content, _ = UNFIT[what]
    if story == "change":
        write(books, "zero\n")
        books.install()
    write(books, "one\n")
    file = books.wiki / FILE

    books.install(
        Installer(
            books.wiki, hook=lambda name: file.write_bytes(content) and None if name == "sync" else None
        )
    )
    books.install()

    assert file.read_bytes() == content
    assert isinstance(write(books, "two\n"), Refusal)


@unfit
def test_a_save_over_the_file_that_came_is_kept_too(books: Books, what: str):
    """The unfit bytes are taken out; before they are given back somebody saves over what was put in their place."""
    content, _ = UNFIT[what]
    write(books, "zero\n")
    books.install()
    write(books, "one\n")
    file = books.wiki / FILE

    def hook(name: str) -> None:
        if name == "exchange":
            file.write_bytes(content)
        if name == "give back":
            file.write_text("saved by hand\n")

    books.install(Installer(books.wiki, hook=hook))
    books.install()

    assert file.read_bytes() == content
    assert versions(books)[-1] == "saved by hand\n"
    file.unlink()
    books.install()
    assert file.read_text() == "saved by hand\n"


@unfit
@pytest.mark.parametrize("number", range(1, 12))
def test_a_death_at_any_step_loses_no_unfit_file(books: Books, what: str, number: int):
    content, _ = UNFIT[what]
    write(books, "zero\n")
    books.install()
    write(books, "one\n")
    file, left = books.wiki / FILE, [number]

    class Death(BaseException):
        pass

    def hook(name: str) -> None:
        if name == "exchange":
            file.write_bytes(content)
        left[0] -= 1
        if left[0] == 0:
            raise Death

    try:
        books.install(Installer(books.wiki, hook=hook))
    except Death:
        pass
    was_saved = any(each == content for each in books.files().values())
    for _ in range(3):
        books.install()

    if was_saved:
        assert file.read_bytes() == content
        assert outbox(books) == [FILE]
        file.unlink()
        books.install()
    assert file.read_text().endswith("one\n")
    assert outbox(books) == []


@obstacles
@pytest.mark.parametrize("story", ["new", "delete"])
def test_what_comes_into_the_way_later_is_named_and_waited_for(books: Books, said: str, story: str):
    write(books, "other\n", "notes/b.md")
    if story == "delete":
        write(books, "zero\n")
    books.install()
    delete(books) if story == "delete" else write(books, "one\n")
    file = books.wiki / FILE
    for there in file.parent.iterdir():
        there.unlink()
    OBSTACLES[said](file)

    reports = books.install()

    if story == "delete":
        assert outbox(books) == []  # where the file was there is none
        return
    assert [outcome.order.file for outcome in reports[0].obstacles] == [FILE]
    assert said in reports[0].obstacles[0].reason
    assert outbox(books) == [FILE]
    for path in (file.parent, file):
        if path.is_symlink() or path.is_file() or path.is_fifo() or path.is_socket():
            path.unlink()
        elif path == file and path.is_dir():
            path.rmdir()
    books.install()
    assert file.read_text().endswith("one\n")
    assert outbox(books) == []


def test_a_rendered_file_does_not_take_the_place_of_what_can_be_no_page(tmp_path: Path):
    house = House(tmp_path)
    house.write_page("notes/a.md", "text\n")
    content = b"x" * (limits.PAGE_BODY_MAX_BYTES + 1)
    house.save("index.md", content)
    house.books.clock.advance(limits.RENDER_DELAY_SECONDS + 1)
    house.books.transact(lambda tx: render_due(tx, 10))
    house.books.install()

    assert house.file("index.md").read_bytes() == content
    assert "default/alpha/index.md" in outbox(house.books)
    house.close()


def test_a_file_that_stays_unfit_is_read_once(books: Books, monkeypatch: pytest.MonkeyPatch):
    write(books, "zero\n")
    books.install()
    write(books, "one\n")
    (books.wiki / FILE).write_bytes(b"\xff")
    installer = Installer(books.wiki)
    books.install(installer)

    def refuse(*_: object) -> None:
        raise AssertionError("it was read again")

    with monkeypatch.context() as patch:
        patch.setattr("memory_core.wiki.outbox.read_plain", refuse)
        assert [one.reason for one in books.install(installer)[0].obstacles] == [NOT_TEXT]
    (books.wiki / FILE).write_text("put right by hand\n")
    books.install(installer)
    assert versions(books)[-1] == "put right by hand\n"


# --- beside the reconcile ---


@unfit
def test_a_look_names_the_file_and_a_later_edit_is_taken_in(tmp_path: Path, what: str):
    content, problem = UNFIT[what]
    house = House(tmp_path)
    house.write_page("notes/a.md", "one\n")
    house.save("notes/a.md", content)
    status = house.look_until_still()
    assert status["troubles"] == [{"file": FILE, "trouble": problem}]

    assert isinstance(house.write_page("notes/a.md", "two\n"), Refusal)
    house.look_until_still()
    assert house.file("notes/a.md").read_bytes() == content

    house.save("notes/a.md", "by hand\n")
    house.look_until_still()
    assert house.chain("notes/a.md") == [("write", "one\n"), ("external", "by hand\n")]
    assert house.outside.status()["troubles"] == []
    house.close()


def test_a_promised_page_whose_place_is_taken_is_a_trouble_of_the_look(tmp_path: Path):
    house = House(tmp_path)
    house.write_page("notes/b.md", "other\n")
    house.books.apply(WritePage(workspace="default", project="alpha", path="notes/a.md", body="one\n"))
    house.file("notes/a.md").mkdir()
    house.books.install(house.installer)

    status = house.look_until_still()

    assert [row["file"] for row in status["troubles"]] == [FILE]
    assert "a folder" in status["troubles"][0]["trouble"]
    house.close()


def test_a_rebuild_of_files_ends_though_a_place_is_taken(tmp_path: Path):
    house = House(tmp_path)
    house.write_page("notes/b.md", "other\n")
    house.books.apply(WritePage(workspace="default", project="alpha", path="notes/a.md", body="one\n"))
    house.file("notes/a.md").mkdir()
    house.books.install(house.installer)
    house.books.transact(lambda tx: wiki_tasks.begin(tx, wiki_tasks.HEAL, {}))
    for _ in range(20):
        house.look()
        house.books.clock.advance(limits.OUTBOX_RETRY_SECONDS)

    assert house.books.query("SELECT 1 FROM wiki_tasks WHERE finished_at IS NULL") == []
    house.close()

"""Files follow the table; nobody's bytes are lost on the way."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from memory_core.commands.files import clean_leftovers
from memory_core.commands.pages import DeletePage, WritePage
from memory_core.wiki import exchange
from memory_core.wiki.outbox import Installer, Result
from tests.books import Books
from tests.wiki.oracle import unexplained

FILE = "default/alpha/notes/a.md"


def write(books: Books, body: str, path: str = "notes/a.md") -> None:
    books.apply(WritePage(workspace="default", project="alpha", path=path, body=body))


def delete(books: Books) -> None:
    books.apply(DeletePage(workspace="default", project="alpha", path="notes/a.md"))


def chain(books: Books) -> list[str]:
    """Bodies of all versions ever, oldest first."""
    return [r["content"][r["body_start"] :] for r in books.query("SELECT * FROM page_versions ORDER BY seq")]


def on_disk(books: Books) -> str:
    return (books.wiki / FILE).read_text()


class Crash(BaseException):
    pass


def crashing(books: Books, number: int) -> Installer:
    """An installer that dies at its step `number`."""
    left = [number]

    def hook(_step: str) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise Crash

    return Installer(books.wiki, hook=hook)


def test_a_page_reaches_its_file_and_the_row_goes(books: Books):
    write(books, "one\n")
    books.install()

    assert on_disk(books).endswith("one\n")
    assert books.query("SELECT * FROM file_outbox") == []
    assert list(books.files()) == [FILE]
    assert "project_id:" in (books.wiki / "default/alpha/_meta.md").read_text()


def test_versions_written_before_the_first_installation_are_installed_as_one(books: Books):
    write(books, "one\n")
    write(books, "two\n")
    write(books, "three\n")

    assert [report.installed for report in books.install()] == [1]
    assert on_disk(books).endswith("three\n")


def test_a_wiki_that_is_away_keeps_its_promises_until_it_is_back(books: Books):
    write(books, "one\n")
    books.install()
    away = books.wiki.with_name("unmounted")
    books.wiki.rename(away)
    write(books, "two\n")
    write(books, "other\n", path="notes/b.md")

    assert [report.blocked for report in books.install()] == [2]
    assert not books.wiki.exists()
    away.rename(books.wiki)
    books.install()

    assert on_disk(books).endswith("two\n")
    assert (books.wiki / "default/alpha/notes/b.md").read_text().endswith("other\n")
    assert books.query("SELECT * FROM file_outbox") == []


def test_a_deletion_waits_for_a_wiki_that_is_away(books: Books):
    write(books, "one\n")
    books.install()
    away = books.wiki.with_name("unmounted")
    books.wiki.rename(away)
    delete(books)
    books.install()
    away.rename(books.wiki)
    books.install()

    assert not (books.wiki / FILE).exists()
    assert books.query("SELECT * FROM file_outbox") == []


@pytest.mark.parametrize("number", range(1, 12))
@pytest.mark.parametrize("story", ["new", "change", "delete", "joined", "edited"])
def test_a_crash_at_any_step_is_made_good_by_the_next_start(books: Books, number: int, story: str):
    if story != "new":
        write(books, "zero\n")
        books.install()
    if story == "delete":
        delete(books)
    else:
        write(books, "one\n")
    if story == "joined":
        write(books, "two\n")
    edit = "mine\n" * 3
    if story == "edited":
        (books.wiki / FILE).write_text(edit)
    expected = {"delete": None, "joined": "two\n", "edited": edit}.get(story, "one\n")

    try:
        books.install(crashing(books, number))
    except Crash:
        assert story == "edited" or unexplained(books) == []
    books.transact(lambda tx: clean_leftovers(tx, Installer(books.wiki)))
    books.install()

    assert unexplained(books) == []
    assert books.query("SELECT * FROM file_outbox") == []
    if expected is None:
        assert books.files() == {}
    else:
        assert list(books.files()) == [FILE]
        assert on_disk(books).endswith(expected)


@pytest.mark.parametrize("step", ["write", "stage", "link", "exchange"])
@pytest.mark.parametrize("way", ["in place", "by rename"])
def test_an_edit_saved_during_the_installation_becomes_the_newest_version(books: Books, step: str, way: str):
    write(books, "zero\n")
    books.install()
    write(books, "one\n")
    done: list[str] = []

    def hook(name: str) -> None:
        if name == step and not done:
            done.append(name)
            target = books.wiki / FILE
            if way == "in place":
                target.write_text("the edit\n")
            else:
                beside = target.with_name("saving")
                beside.write_text("the edit\n")
                beside.rename(target)

    reports = books.install(Installer(books.wiki, hook=hook))

    assert done
    assert sum(report.external for report in reports) == 1
    assert on_disk(books) == "the edit\n"
    assert chain(books) == ["zero\n", "one\n", "the edit\n"]
    assert unexplained(books) == []
    assert list(books.files()) == [FILE]


@pytest.mark.parametrize("number", range(1, 14))
def test_a_crash_while_an_edit_is_taken_in_loses_neither_text(books: Books, number: int):
    write(books, "zero\n")
    books.install()
    write(books, "one\n")
    crash = crashing(books, number)
    steps: list[str] = []

    def hook(name: str) -> None:
        steps.append(name)
        if name == "exchange" and steps.count("exchange") == 1:
            (books.wiki / FILE).write_text("the edit\n")
        crash._hook(name)

    try:
        books.install(Installer(books.wiki, hook=hook))
    except Crash:
        pass
    books.install()

    assert unexplained(books) == []
    if "exchange" in steps:
        assert on_disk(books) == "the edit\n"
        assert chain(books) == ["zero\n", "one\n", "the edit\n"]
    assert list(books.files()) == [FILE]


def test_an_edit_beats_a_deletion_that_did_not_see_it(books: Books):
    write(books, "zero\n")
    books.install()
    delete(books)
    (books.wiki / FILE).write_text("still needed\n")
    books.install()

    assert on_disk(books) == "still needed\n"
    assert unexplained(books) == []
    assert len(books.query("SELECT * FROM pages WHERE tombstoned_at IS NULL")) == 1


def test_an_edit_saved_between_look_and_removal_beats_the_deletion(books: Books):
    write(books, "zero\n")
    books.install()
    delete(books)

    def hook(name: str) -> None:
        if name == "take":
            (books.wiki / FILE).write_text("still needed\n")

    books.install(Installer(books.wiki, hook=hook))

    assert on_disk(books) == "still needed\n"
    assert unexplained(books) == []


def test_a_file_that_stands_where_a_new_page_goes_is_kept_as_a_version(books: Books):
    target = books.wiki / FILE
    target.parent.mkdir(parents=True)
    target.write_text("was here first\n")
    write(books, "one\n")
    books.install()

    assert on_disk(books) == "was here first\n"
    assert chain(books) == ["one\n", "was here first\n"]


def test_a_page_whose_file_was_deleted_by_hand_is_written_again_by_the_next_write(books: Books):
    write(books, "zero\n")
    books.install()
    (books.wiki / FILE).unlink()
    write(books, "one\n")
    books.install()

    assert on_disk(books).endswith("one\n")


@pytest.mark.parametrize("step", ["look", "exchange"])
def test_a_secret_in_an_edit_is_redacted_in_every_index_and_untouched_in_its_file(books: Books, step: str):
    write(books, "zero\n")
    books.install()
    write(books, "one\n")
    edit = "# Keys\nthe password is hunter2secret\n"

    def hook(name: str) -> None:
        if name == "exchange":
            (books.wiki / FILE).write_text(edit)

    books.install(Installer(books.wiki, hook=hook), lambda text: text.replace("hunter2secret", "[REDACTED]"))

    assert on_disk(books) == edit
    assert unexplained(books) == []
    dump = str(
        [
            tuple(r.values())
            for t in ("page_versions", "page_chunks")
            for r in books.query(f"SELECT * FROM {t}")
        ]
    )
    assert "hunter2secret" not in dump
    assert "[REDACTED]" in dump


@pytest.mark.parametrize("content", [b"", b"\n" * 100, b"---\na: &x [*x]\n---\n"])
def test_any_bytes_found_in_a_page_stay_in_its_file(books: Books, content: bytes):
    write(books, "zero\n")
    books.install()
    write(books, "one\n")

    def hook(name: str) -> None:
        if name == "exchange":
            (books.wiki / FILE).write_bytes(content)

    books.install(Installer(books.wiki, hook=hook))

    assert (books.wiki / FILE).read_bytes() == content
    assert unexplained(books) == []


def test_nothing_is_written_through_a_symbolic_link(books: Books, tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (books.wiki / "default").mkdir()
    write(books, "one\n")
    (books.wiki / "default/alpha").symlink_to(outside)
    reports = books.install()

    assert [r.blocked for r in reports] == [1]
    assert list(outside.iterdir()) == []
    assert len(books.query("SELECT * FROM file_outbox")) == 1


@pytest.mark.parametrize("what", ["link", "directory", "pipe"])
def test_what_is_no_plain_file_is_left_alone_and_blocks_only_itself(books: Books, tmp_path: Path, what: str):
    target = books.wiki / FILE
    target.parent.mkdir(parents=True)
    victim = tmp_path / "victim"
    victim.write_text("precious")
    write(books, "one\n")
    write(books, "two\n", "notes/b.md")
    if what == "link":
        target.symlink_to(victim)
    elif what == "pipe":
        os.mkfifo(target)
    else:
        target.mkdir()
    reports = books.install()

    assert [(r.installed, r.blocked) for r in reports] == [(1, 1)]
    assert victim.read_text() == "precious"
    assert (books.wiki / "default/alpha/notes/b.md").exists()


def test_a_link_put_in_place_at_the_very_moment_goes_back_as_it_was(books: Books, tmp_path: Path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    write(books, "zero\n")
    books.install()
    write(books, "one\n")

    def hook(name: str) -> None:
        if name == "exchange":
            (books.wiki / FILE).unlink()
            (books.wiki / FILE).symlink_to(victim)

    outcome = books.install(Installer(books.wiki, hook=hook))

    assert [r.blocked for r in outcome] == [1]
    assert (books.wiki / FILE).is_symlink()
    assert victim.read_text() == "precious"


def test_without_atomic_exchange_it_works_and_says_so(books: Books, monkeypatch: pytest.MonkeyPatch, caplog):
    def not_there(*_arguments: object) -> None:
        raise OSError(38, "not there")

    monkeypatch.setattr(exchange, "_renameat2", not_there)
    write(books, "zero\n")
    books.install()
    write(books, "one\n")

    def hook(name: str) -> None:
        if name == "exchange":
            (books.wiki / FILE).write_text("the edit\n")

    books.install(Installer(books.wiki, hook=hook))

    assert on_disk(books) == "the edit\n"
    assert chain(books) == ["zero\n", "one\n", "the edit\n"]
    assert list(books.files()) == [FILE]
    assert "wiki_exchange_fallback" in {getattr(r, "action", "") for r in caplog.records}


def test_leftovers_without_a_row_go_when_their_bytes_are_known_and_stay_when_not(books: Books):
    write(books, "one\n")
    books.install()
    folder = (books.wiki / FILE).parent
    (folder / ".x-99").write_bytes((books.wiki / FILE).read_bytes())
    (folder / ".t-98").write_text("half a dra")
    (folder / ".x-97").write_text("never seen\n")

    unknown = books.transact(lambda tx: clean_leftovers(tx, Installer(books.wiki)))

    assert unknown == ["default/alpha/notes/.x-97"]
    assert sorted(path.name for path in folder.iterdir()) == [".x-97", "a.md"]


def test_an_order_outside_the_root_is_blocked(books: Books):
    from memory_core.wiki.outbox import Order

    order = Order(
        seq=1, file="../escape.md", expected=frozenset(), sha256=hashlib.sha256(b"x").digest(), content=b"x"
    )

    assert [o.result for o in Installer(books.wiki).install([order])] == [Result.BLOCKED]
    assert not (books.wiki.parent / "escape.md").exists()

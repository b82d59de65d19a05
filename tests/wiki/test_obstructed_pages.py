"""What lies in place of a page's file and is no file: the page stays, it is named, and the file comes back when it goes."""

from __future__ import annotations

import logging
import os
from collections.abc import Generator
from pathlib import Path

import pytest

from memory_core.commands.pages import DeletePage
from memory_core.commands.wiki_tasks import StartHeal
from tests.wiki.house import House
from tests.wiki.oracle import unexplained
from tests.wiki.test_folders import finish_task, settled
from tests.wiki.unfit import OBSTACLES, obstacles

FILE = "default/alpha/notes/a.md"


@pytest.fixture
def house(tmp_path: Path) -> Generator[House]:
    made = House(tmp_path)
    made.write_page("notes/a.md", "text of it\n")
    made.write_page("other/b.md", "other\n")
    made.look_until_still()
    yield made
    made.close()


def obstruct(house: House, said: str) -> Path:
    file = house.file("notes/a.md")
    file.unlink()
    OBSTACLES[said](file)
    return file


def clear(file: Path) -> None:
    for path in (file.parent, file):
        if path.is_symlink() or path.is_file() or path.is_fifo() or path.is_socket():
            path.unlink()
            return
    file.rmdir()


@obstacles
def test_the_page_stays_and_what_lies_there_is_named(house: House, said: str):
    obstruct(house, said)

    house.look_until_still()
    status = house.look_until_still()

    assert sorted(house.pages()) == ["notes/a.md", "other/b.md"]
    assert said in {row["file"]: row["trouble"] for row in status["troubles"]}[FILE]
    assert house.books.query("SELECT 1 FROM audit_log WHERE op = 'delete_page'") == []
    assert status["status"] == "ok"


@obstacles
def test_the_file_comes_back_by_itself_when_its_place_is_free(house: House, said: str):
    file = obstruct(house, said)
    house.look_until_still()
    house.books.install(house.installer)
    clear(file)

    settled(house)

    assert file.read_text().endswith("text of it\n")
    assert [cause for cause, _ in house.chain("notes/a.md")] == ["write"]
    assert house.outside.status()["troubles"] == []


@obstacles
def test_a_file_that_a_person_puts_there_then_is_the_newest_version(house: House, said: str):
    file = obstruct(house, said)
    house.look_until_still()
    clear(file)
    house.save("notes/a.md", "a person's\n")

    settled(house)

    assert [body for _, body in house.chain("notes/a.md")] == ["text of it\n", "a person's\n"]


@obstacles
def test_an_obstructed_page_can_be_deleted(house: House, said: str):
    obstruct(house, said)
    house.look_until_still()

    house.books.apply(DeletePage(workspace="default", project="alpha", path="notes/a.md"))
    house.books.install(house.installer)
    house.look_until_still()

    assert list(house.pages()) == ["other/b.md"]
    assert house.books.query("SELECT file FROM file_outbox") == []


def test_a_page_that_was_moved_into_a_folder_of_its_own_name_is_followed(house: House):
    file = house.file("notes/a.md")
    file.rename(house.file("notes/whole.md"))
    file.mkdir()
    before = house.page("notes/a.md")["id"]

    house.look_until_still()
    status = house.look_until_still()

    assert house.page("notes/whole.md")["id"] == before
    assert sorted(house.pages()) == ["notes/whole.md", "other/b.md"]
    assert [row["file"] for row in status["troubles"]] == [FILE]


def test_many_pages_whose_folder_is_a_file_are_all_kept(house: House):
    for number in range(30):
        house.write_page(f"many/{number}.md", f"text {number}\n")
    house.look_until_still()
    for file in house.file("many").iterdir():
        file.unlink()
    house.file("many").rmdir()
    house.file("many").write_text("a file")

    house.look_until_still()
    house.look_until_still()
    assert len(house.pages()) == 32
    house.file("many").unlink()
    settled(house)
    assert len(list(house.file("many").iterdir())) == 30


def test_healing_ends_and_counts_what_it_cannot_write(house: House):
    obstruct(house, "a named pipe")

    house.books.apply(StartHeal())
    task = finish_task(house)

    assert task.counts["blocked"] == 1
    assert sorted(house.pages()) == ["notes/a.md", "other/b.md"]


@pytest.mark.parametrize("name", ["pipe", "pipe.md", "deep/pipe.txt"])
def test_what_is_no_file_is_named_under_any_name(house: House, name: str):
    house.file(name).parent.mkdir(exist_ok=True)
    os.mkfifo(house.file(name))

    status = house.look_until_still()

    assert [row["file"] for row in status["troubles"]] == [f"default/alpha/{name}"]
    assert "a named pipe" in status["troubles"][0]["trouble"]
    assert unexplained(house.books) == []


def test_a_folder_that_is_named_like_a_page_is_named(house: House):
    house.file("notes/deep.md").mkdir()

    status = house.look_until_still()

    assert [row["file"] for row in status["troubles"]] == ["default/alpha/notes/deep.md"]
    assert "a folder" in status["troubles"][0]["trouble"]


@pytest.mark.parametrize("name", [".hidden", ".hidden.md", "~$x.md", "plain folder"])
def test_what_is_hidden_a_draft_or_a_plain_folder_is_passed_over(house: House, name: str):
    house.file(name).mkdir() if name == "plain folder" else os.mkfifo(house.file(name))

    assert house.look_until_still()["troubles"] == []


def test_a_secret_in_the_name_of_what_is_no_file_is_not_told(house: House, caplog: pytest.LogCaptureFixture):
    os.mkfifo(house.file("notes/hunter2"))
    house.file("notes/hunter2.md").mkdir()

    with caplog.at_level(logging.DEBUG):
        status = house.look_until_still()

    assert {row["file"] for row in status["troubles"]} == {
        "default/alpha/notes/[REDACTED]",
        "default/alpha/notes/[REDACTED].md",
    }
    assert "hunter2" not in f"{status}{caplog.text}"

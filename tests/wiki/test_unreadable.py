"""A file that the server may not read is named and left alone: its page stays as it is, and nothing waits for ever."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memory_core.commands.wiki_tasks import StartHeal
from tests.wiki.house import House
from tests.wiki.test_folders import finish_task, settled

_ORDINARY = 65_534


@contextmanager
def as_an_ordinary_user() -> Generator[None]:
    """Root may read everything: a test that is run by root is somebody else for a while."""
    was = os.geteuid()
    if was == 0:
        os.seteuid(_ORDINARY)
    try:
        yield
    finally:
        os.seteuid(was)


@pytest.fixture
def house() -> Generator[House]:
    directory = Path(tempfile.mkdtemp(prefix="unreadable-"))
    made = House(directory)
    made.write_page("notes/a.md", "first text\n")
    made.write_page("notes/b.md", "second text\n")
    made.write_page("beside.md", "of beta\n", project="beta")
    made.look_until_still()
    if os.geteuid() == 0:
        for path in (directory, *directory.rglob("*")):
            os.chown(path, _ORDINARY, _ORDINARY)
    yield made
    made.close()
    shutil.rmtree(directory)


def lock_up(house: House, path: str, text: str) -> Path:
    """Somebody's new text in a file that others may not read."""
    file = house.file(path)
    file.write_text(text)
    file.chmod(0)
    return file


def test_an_unreadable_file_is_named_and_its_page_stays(house: House):
    file = lock_up(house, "notes/a.md", "secret plans\n")

    with as_an_ordinary_user():
        for _ in range(3):
            house.look()

    status = house.outside.status()
    assert [row["file"] for row in status["troubles"]] == ["default/alpha/notes/a.md"]
    assert "cannot be read: Permission denied" in status["troubles"][0]["trouble"]
    assert house.pages()["notes/a.md"] == "first text\n"
    file.chmod(0o600)
    settled(house)
    assert house.pages()["notes/a.md"] == "secret plans\n"


def test_an_agents_write_onto_an_unreadable_file_takes_nothing_from_it_and_heal_ends(house: House):
    file = lock_up(house, "notes/a.md", "secret plans\n")

    with as_an_ordinary_user():
        house.write_page("notes/a.md", "by an agent\n")
        house.books.apply(StartHeal())
        finish_task(house)

    file.chmod(0o600)
    assert file.read_text() == "secret plans\n"
    settled(house)
    assert {"by an agent\n", "secret plans\n"} <= {body for _, body in house.chain("notes/a.md")}


@pytest.mark.parametrize("place", ["notes", "."])
@pytest.mark.parametrize("mode", [0o000, 0o400, 0o200])
def test_what_may_not_be_looked_into_deletes_nothing_and_is_named(house: House, place: str, mode: int):
    folder = house.file(place)
    folder.chmod(mode)
    house.save("beside.md", "edited meanwhile\n", project="beta")

    with as_an_ordinary_user():
        for _ in range(8):
            house.look()

    assert sorted(house.pages()) == ["beside.md", "notes/a.md", "notes/b.md"]
    assert house.pages()["beside.md"] == "edited meanwhile\n"
    status = house.outside.status()
    assert any("permission denied" in row["trouble"] for row in status["troubles"])
    assert all(row["file"].startswith("default/alpha") for row in status["troubles"])
    folder.chmod(0o700)
    settled(house)

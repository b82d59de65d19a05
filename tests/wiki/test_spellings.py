"""A page has one file, however its name is spelled: memoryd makes no second one beside a person's."""

from __future__ import annotations

import unicodedata
from collections.abc import Generator
from pathlib import Path

import pytest

from memory_core.commands.pages import WritePage
from tests.wiki.house import House
from tests.wiki.oracle import unexplained
from tests.wiki.test_folders import mount, unmount

SPELLINGS = [
    ("notes/Twin", "notes/twin.md"),
    ("notes/twin", "notes/TWIN.md"),
    ("notes/Twin", "notes/Twin.MD"),
    ("Ideas/Twin", "ideas/twin.md"),
    ("notes/Ärger", f"notes/{unicodedata.normalize('NFC', 'ärger')}.md"),
]


@pytest.fixture
def house(tmp_path: Path) -> Generator[House]:
    made = House(tmp_path)
    made.write_page("notes/a.md", "text\n")
    made.look_until_still()
    yield made
    made.close()


def agent_writes(house: House, path: str, body: str) -> None:
    house.books.apply(WritePage(workspace="default", project="alpha", path=path, body=body))


def turns(house: House, number: int = 8) -> None:
    """Writer and looking thread, both as often as it takes."""
    for _ in range(number):
        house.files.install(promised=True)
        house.look()


def files(house: House) -> list[str]:
    names = (name.removeprefix("default/alpha/") for name in house.books.files())
    return sorted(name for name in names if name not in ("index.md", "notes/a.md"))


@pytest.mark.parametrize(("agents", "persons"), SPELLINGS)
@pytest.mark.parametrize("first", ["writer", "look"])
def test_what_was_promised_while_the_wiki_was_away_is_no_twin_of_a_persons_file(
    house: House, agents: str, persons: str, first: str
):
    hidden = unmount(house, leaves="nothing")
    agent_writes(house, agents, "by an agent\n")
    turns(house, 2)
    person = hidden / "default" / "alpha" / persons
    person.parent.mkdir(exist_ok=True)
    person.write_text("by a person\n")
    mount(house, hidden)
    if first == "look":
        for _ in range(3):
            house.look()

    turns(house)
    house.books.clock.advance(120)
    turns(house)

    assert files(house) == [persons]
    assert house.file(persons).read_text() == "by a person\n"
    assert [body for _, body in house.chain(persons)] == ["by an agent\n", "by a person\n"]
    assert house.books.query("SELECT file FROM file_outbox") == []
    assert house.outside.status()["troubles"] == []
    assert unexplained(house.books) == []


def test_a_file_that_nobody_has_seen_yet_gets_no_twin_either(house: House):
    house.save("notes/twin.md", "by a person\n")
    agent_writes(house, "notes/Twin", "by an agent\n")

    turns(house)

    assert files(house) == ["notes/twin.md"]
    assert [body for _, body in house.chain("notes/twin.md")] == ["by an agent\n", "by a person\n"]


@pytest.mark.parametrize("first", ["writer", "look"])
def test_an_update_comes_into_the_file_that_was_only_renamed_in_case(house: House, first: str):
    hidden = unmount(house, leaves="nothing")
    agent_writes(house, "notes/a.md", "by an agent\n")
    turns(house, 2)
    folder = hidden / "default" / "alpha" / "notes"
    (folder / "a.md").rename(folder / "A.md")
    mount(house, hidden)
    if first == "look":
        for _ in range(3):
            house.look()

    turns(house)
    house.books.clock.advance(120)
    turns(house)

    assert [file.name for file in house.file("notes").iterdir()] == ["A.md"]
    assert house.file("notes/A.md").read_text().endswith("by an agent\n")
    assert [body for _, body in house.chain("notes/A.md")] == ["text\n", "by an agent\n"]
    assert house.books.query("SELECT file FROM file_outbox") == []
    assert unexplained(house.books) == []


def test_an_edit_beside_an_update_under_another_spelling_loses_neither(house: House):
    hidden = unmount(house, leaves="nothing")
    agent_writes(house, "notes/a.md", "by an agent\n")
    folder = hidden / "default" / "alpha" / "notes"
    (folder / "a.md").unlink()
    (folder / "A.md").write_text("by a person\n")
    mount(house, hidden)

    turns(house)

    assert [file.name for file in house.file("notes").iterdir()] == ["A.md"]
    assert [body for _, body in house.chain("notes/A.md")] == ["text\n", "by an agent\n", "by a person\n"]


def test_a_twin_that_can_be_no_page_is_named_and_waited_for(house: House):
    house.save("notes/twin.md", b"caf\xe9\n")
    agent_writes(house, "notes/Twin", "by an agent\n")
    turns(house)

    assert files(house) == ["notes/twin.md"]
    troubles = {row["file"]: row["trouble"] for row in house.outside.status()["troubles"]}
    assert "notes/twin.md" in troubles["default/alpha/notes/Twin.md"]

    house.file("notes/twin.md").unlink()
    house.books.clock.advance(120)
    turns(house)
    assert files(house) == ["notes/Twin.md"]


# --- what is said of what waits ---


@pytest.mark.parametrize("leaves", ["nothing", "an empty directory"])
def test_what_waited_for_a_directory_is_tried_at_once_when_it_is_back(house: House, leaves: str):
    hidden = unmount(house, leaves=leaves)
    agent_writes(house, "notes/b", "written meanwhile\n")
    for _ in range(200):
        house.files.install(promised=False)
        house.books.clock.advance(1)
    house.look()
    assert [row["file"] for row in house.outside.status()["troubles"]] == ["default/alpha/notes/b.md"]
    mount(house, hidden)

    house.look()
    house.files.install(promised=False)

    assert house.outside.status()["troubles"] == []
    assert house.file("notes/b.md").read_text().endswith("written meanwhile\n")


def test_a_file_that_waits_is_named_in_the_renamed_folder_of_its_project(house: House):
    agent_writes(house, "notes/b", "one\n")
    house.file("notes/b.md").mkdir()
    house.files.install(promised=True)
    house.file("").rename(house.file("").with_name("elsewhere"))
    for _ in range(5):
        house.look()
        house.files.install(promised=True)

    status = house.outside.status()
    assert [row["file"] for row in status["troubles"]] == ["default/elsewhere/notes/b.md"]
    assert (status["unwritten"], status["waiting"]) == (1, 1)

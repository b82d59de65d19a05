"""Each side can rebuild the other: tables from files, files from tables."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from pathlib import Path

import pytest

from memory_core.commands.wiki_tasks import StartHeal, StartReindex
from memory_core.domain.command import Refusal
from memory_core.store import wiki_tasks
from tests.wiki.house import House
from tests.wiki.oracle import unexplained


@pytest.fixture
def house(tmp_path: Path) -> Generator[House]:
    made = House(tmp_path)
    for number in range(25):
        made.write_page(f"notes/{number}.md", f"text {number}\n")
    made.write_page("decisions/x.md", "---\ntags: [one]\npinned: true\n---\n# Decided\n", project="beta")
    made.look_until_still()
    yield made
    made.close()


@pytest.fixture
def rebuilt(house: House, tmp_path: Path) -> Generator[House]:
    """The same wiki beside a database that knows nothing."""
    (tmp_path / "anew").mkdir()
    shutil.copytree(house.root, tmp_path / "anew" / "wiki")
    made = House(tmp_path / "anew")
    yield made
    made.close()


def task_of(house: House):
    with house.books.database.snapshot() as reading:
        return wiki_tasks.newest(reading)


def projects(house: House) -> set[tuple[str, str, bytes]]:
    return {
        (row["w"], row["name"], row["id"])
        for row in house.books.query(
            "SELECT p.id, p.name, w.name AS w FROM projects p JOIN workspaces w ON w.id = p.workspace_id"
        )
    }


def test_a_database_that_knows_nothing_takes_nothing_in_by_itself(rebuilt: House):
    status = rebuilt.look_until_still()

    assert rebuilt.pages() == {}
    assert set(status["strangers"]) == {"default/alpha", "default/beta"}
    assert "memoryd reindex" in status["strangers"]["default/alpha"]


def test_a_reindex_brings_projects_with_their_ids_and_pages_with_their_facts(house: House, rebuilt: House):
    rebuilt.books.apply(StartReindex())
    rebuilt.look_until_still()

    assert projects(rebuilt) == projects(house)
    assert rebuilt.pages() == house.pages()
    assert rebuilt.found("Decided") == ["decisions/x.md"]
    assert rebuilt.page("decisions/x.md")["pinned"] == 1
    assert {row["cause"] for row in rebuilt.books.query("SELECT cause FROM page_versions")} == {"reindex"}
    task = task_of(rebuilt)
    assert task is not None
    assert task.finished_at is not None
    assert (task.counts["adopted"], task.counts["written"]) == (2, 26)
    assert unexplained(rebuilt.books) == []


def test_a_reindex_that_was_interrupted_goes_on(rebuilt: House, tmp_path: Path):
    rebuilt.books.apply(StartReindex())
    for _ in range(3):
        rebuilt.look()
    rebuilt.close()

    later = House(tmp_path / "anew")
    later.look_until_still()

    assert len(later.pages()) == 26
    task = task_of(later)
    assert task is not None
    assert task.finished_at is not None
    later.close()


def test_a_reindex_is_refused_where_there_are_pages(house: House):
    answer = house.books.apply(StartReindex())

    assert isinstance(answer, Refusal)
    assert "--force" in answer.message
    assert not isinstance(house.books.apply(StartReindex(force=True)), Refusal)
    assert isinstance(house.books.apply(StartReindex(force=True)), Refusal)
    house.look_until_still()


def test_a_copied_directory_is_not_taken_in_twice(house: House):
    shutil.copytree(house.root / "default/alpha", house.root / "default/copy")
    before = house.pages()
    house.books.apply(StartReindex(force=True))

    status = house.look_until_still()

    assert house.pages() == before
    assert "default/alpha" in status["strangers"]["default/copy"]


def test_lost_files_are_written_again(house: House):
    shutil.rmtree(house.root / "default")
    assert house.look_until_still()["status"] == "held"

    house.books.apply(StartHeal())
    status = house.look_until_still()

    assert (status["status"], status["held"]) == ("ok", [])
    assert unexplained(house.books) == []
    assert len(house.books.files()) == 26
    assert (house.root / "default/alpha/_meta.md").exists()
    assert {row["cause"] for row in house.books.query("SELECT cause FROM page_versions")} == {"write"}
    task = task_of(house)
    assert task is not None
    assert task.counts["rewritten"] == 26
    assert task.finished_at is not None


def test_healing_overwrites_no_edit(house: House):
    shutil.rmtree(house.root / "default/alpha/notes")
    assert house.look_until_still()["status"] == "held"
    house.save("notes/3.md", "what a person wrote meanwhile\n")

    house.books.apply(StartHeal())
    house.look_until_still()

    assert house.file("notes/3.md").read_text() == "what a person wrote meanwhile\n"
    assert [body for _, body in house.chain("notes/3.md")] == ["text 3\n", "what a person wrote meanwhile\n"]
    assert unexplained(house.books) == []


def test_a_file_that_appears_while_it_is_healed_is_taken_in(house: House):
    shutil.rmtree(house.root / "default/alpha/notes")
    house.look_until_still()
    install = house.installer.install

    def edit_first(orders):
        if not house.file("notes/7.md").exists():
            house.save("notes/7.md", "just in time\n")
        return install(orders)

    house.installer.install = edit_first  # type: ignore[method-assign]
    house.books.apply(StartHeal())
    house.look_until_still()

    assert "just in time\n" in {body for _, body in house.chain("notes/7.md")}
    assert unexplained(house.books) == []


def test_broken_files_are_replaced_only_when_asked(house: House):
    house.save("notes/1.md", b"\x00" * 40)
    house.look_until_still()
    house.books.apply(StartHeal())
    assert house.look_until_still()["broken"] == 1
    assert house.file("notes/1.md").read_bytes() == b"\x00" * 40

    house.books.apply(StartHeal(broken=True))
    house.look_until_still()

    assert house.file("notes/1.md").read_text().endswith("text 1\n")
    assert unexplained(house.books) == []


def test_deletions_are_accepted_when_somebody_says_so(house: House):
    shutil.rmtree(house.root / "default/alpha/notes")
    assert house.look_until_still()["status"] == "held"

    house.books.apply(StartHeal(accept_deletions=True))
    status = house.look_until_still()

    assert status["status"] == "ok"
    assert list(house.pages()) == ["decisions/x.md"]

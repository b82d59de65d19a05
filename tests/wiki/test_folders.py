"""A project's folder is the project's wherever it lies: renamed, copied, gone and back, written to meanwhile."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from memory_core.commands.pages import DeletePage
from memory_core.commands.wiki_tasks import StartHeal, StartReindex
from memory_core.ids import id_text
from memory_core.store import wiki_tasks
from tests.wiki.house import House
from tests.wiki.oracle import unexplained


@pytest.fixture
def house(tmp_path: Path) -> Generator[House]:
    made = House(tmp_path)
    for number in range(6):
        made.write_page(f"notes/{number}.md", f"text {number}\n")
    made.write_page("notes/b.md", "of beta\n", project="beta")
    made.look_until_still()
    yield made
    made.close()


def folder(house: House, name: str) -> Path:
    return house.root / "default" / name


def ids(house: House) -> set[bytes]:
    return {row["id"] for row in house.books.query("SELECT id FROM pages WHERE tombstoned_at IS NULL")}


def folders(house: House) -> dict[str, str | None]:
    return {row["name"]: row["folder"] for row in house.books.query("SELECT name, folder FROM projects")}


def settled(house: House) -> dict[str, Any]:
    """The status when files and table agree and nothing waits."""
    house.look_until_still()
    house.books.install(house.installer)
    status = house.look_until_still()
    assert unexplained(house.books) == []
    assert house.books.query("SELECT file FROM file_outbox") == []
    assert (status["status"], status["held"], status["away"], status["broken"]) == ("ok", [], "", 0)
    return status


# --- the wiki as a whole is gone ---


def unmount(house: House, *, leaves: str) -> Path:
    hidden = house.root.with_name("unmounted")
    house.root.rename(hidden)
    if leaves == "an empty directory":
        house.root.mkdir()
    return hidden


def mount(house: House, hidden: Path) -> None:
    if house.root.exists():
        house.root.rmdir()
    hidden.rename(house.root)


@pytest.mark.parametrize("leaves", ["nothing", "an empty directory"])
def test_a_wiki_that_is_gone_is_held_and_what_is_written_meanwhile_comes_with_it(house: House, leaves: str):
    before = ids(house)
    hidden = unmount(house, leaves=leaves)
    house.write_page("notes/0.md", "written meanwhile\n")
    house.write_page("notes/new.md", "new meanwhile\n")
    house.write_page("notes/c.md", "of a project that is new\n", project="gamma")
    house.books.apply(DeletePage(workspace="default", project="alpha", path="notes/5.md"))
    house.books.install(house.installer)

    status = house.look_until_still()

    assert status["status"] == "held"
    assert str(house.root) in status["away"]
    assert {row["project"] for row in status["held"]} == {"default/alpha", "default/beta"}
    assert before - ids(house) == {house.page("notes/5.md")["id"]}
    assert not house.root.exists() or list(house.root.iterdir()) == []
    mount(house, hidden)
    settled(house)
    assert house.pages()["notes/0.md"] == "written meanwhile\n"
    assert house.file("notes/0.md").read_text().endswith("written meanwhile\n")
    assert house.file("notes/new.md").exists()
    assert house.file("notes/c.md", project="gamma").exists()
    assert not house.file("notes/5.md").exists()


@pytest.mark.parametrize("leaves", ["nothing", "an empty directory"])
def test_healing_makes_a_wiki_that_is_gone_anew(house: House, leaves: str):
    unmount(house, leaves=leaves)
    house.write_page("notes/new.md", "new meanwhile\n")
    house.look_until_still()

    house.books.apply(StartHeal())
    finish_task(house)

    settled(house)
    assert len(house.books.files()) == 8
    assert (folder(house, "alpha") / "_meta.md").exists()
    assert (house.root.stat().st_mode & 0o777) in (0o700, 0o755)


def finish_task(house: House) -> wiki_tasks.WikiTask:
    """Both threads until the open task is done; the writer tries blocked files again and again."""
    for _ in range(200):
        again = house.look()
        house.books.install(house.installer)
        with house.books.database.snapshot() as reading:
            task = wiki_tasks.newest(reading)
        if task is not None and task.finished_at is not None and not again:
            return task
    raise AssertionError(f"the task does not end: {house.outside.status()}")


def test_healing_ends_where_a_file_cannot_be_written_and_says_how_many(house: House):
    shutil.rmtree(folder(house, "alpha"))
    house.look_until_still()
    folder(house, "alpha").mkdir()
    (folder(house, "alpha") / "notes").write_text("a file where a folder belongs")

    house.books.apply(StartHeal())
    task = finish_task(house)

    assert task.counts["blocked"] == 6
    (folder(house, "alpha") / "notes").unlink()
    house.books.install(house.installer)
    settled(house)


def test_a_wiki_that_is_gone_for_good_loses_its_pages_only_when_somebody_says_so(house: House):
    unmount(house, leaves="nothing")
    house.look_until_still()

    house.books.apply(StartHeal(accept_deletions=True))
    finish_task(house)

    assert house.pages() == {}
    house.write_page("notes/again.md", "begun anew\n")
    settled(house)
    assert list(house.books.files()) == ["default/alpha/notes/again.md"]


# --- a project's folder has another name ---


def test_a_renamed_folder_is_followed_and_its_pages_are_the_same(house: House):
    before = ids(house)
    folder(house, "alpha").rename(folder(house, "elsewhere"))

    status = settled(house)

    assert ids(house) == before
    assert folders(house) == {"alpha": "default/elsewhere", "beta": None}
    assert status["strangers"] == {}
    assert {row["cause"] for row in house.books.query("SELECT cause FROM page_versions")} == {"write"}
    house.write_page("notes/0.md", "written after\n")
    assert (folder(house, "elsewhere") / "notes/0.md").read_text().endswith("written after\n")
    assert not folder(house, "alpha").exists()
    settled(house)


def test_a_folder_that_is_renamed_back_has_its_old_name_again(house: House):
    for name, was in (("one", "alpha"), ("two", "one"), ("alpha", "two")):
        folder(house, was).rename(folder(house, name))
        settled(house)

    row = house.books.query("SELECT folder, earlier_folders FROM projects WHERE name = 'alpha'")[0]
    assert (row["folder"], row["earlier_folders"]) == (None, '["default/one", "default/two"]')


def test_a_renamed_workspace_is_followed_with_all_its_projects(house: House):
    before = ids(house)
    (house.root / "default").rename(house.root / "main")

    settled(house)

    assert ids(house) == before
    assert folders(house) == {"alpha": "main/alpha", "beta": "main/beta"}


def test_two_folders_that_were_exchanged_are_each_followed(house: House):
    before, pages = ids(house), house.pages()
    folder(house, "alpha").rename(folder(house, "aside"))
    folder(house, "beta").rename(folder(house, "alpha"))
    folder(house, "aside").rename(folder(house, "beta"))

    settled(house)

    assert (ids(house), house.pages()) == (before, pages)
    assert folders(house) == {"alpha": "default/beta", "beta": "default/alpha"}


def test_a_project_that_is_made_later_does_not_get_a_folder_that_another_one_has(house: House):
    folder(house, "alpha").rename(folder(house, "gamma"))
    settled(house)

    house.write_page("notes/c.md", "of gamma itself\n", project="gamma")

    settled(house)
    found = folders(house)
    assert found["alpha"] == "default/gamma"
    assert (found["gamma"] or "").startswith("default/gamma-")
    assert (house.root / (found["gamma"] or "") / "notes/c.md").exists()


def test_pages_written_and_deleted_while_a_folder_is_being_renamed_lie_in_the_renamed_one(house: House):
    folder(house, "alpha").rename(folder(house, "elsewhere"))
    house.write_page("notes/0.md", "written meanwhile\n")
    house.books.apply(DeletePage(workspace="default", project="alpha", path="notes/1.md"))
    house.books.install(house.installer)
    assert not folder(house, "alpha").exists()

    settled(house)

    assert (folder(house, "elsewhere") / "notes/0.md").read_text().endswith("written meanwhile\n")
    assert not (folder(house, "elsewhere") / "notes/1.md").exists()
    assert [cause for cause, _ in house.chain("notes/0.md")] == ["write", "write"]


def test_an_edit_by_hand_in_a_renamed_folder_beside_a_write_loses_neither(house: House):
    folder(house, "alpha").rename(folder(house, "elsewhere"))
    (folder(house, "elsewhere") / "notes/0.md").write_text("by hand\n")
    house.write_page("notes/0.md", "by an agent\n")

    settled(house)

    assert [body for _, body in house.chain("notes/0.md")] == ["text 0\n", "by an agent\n", "by hand\n"]
    assert (folder(house, "elsewhere") / "notes/0.md").read_text() == "by hand\n"


@pytest.mark.parametrize("way", ["into", "over"])
def test_a_folder_that_was_made_anew_meanwhile_and_gets_its_old_content_back_converges(
    house: House, way: str
):
    """As a file synchroniser does it: the folder comes back under its name, with its mark, beside the renamed one."""
    folder(house, "alpha").rename(folder(house, "elsewhere"))
    shutil.copytree(folder(house, "elsewhere"), folder(house, "alpha"))
    shutil.rmtree(folder(house, "alpha") / "notes")
    house.look_until_still()
    house.write_page("notes/0.md", "written meanwhile\n")
    house.look_until_still()
    target = folder(house, "alpha")
    if way == "into":
        folder(house, "elsewhere").rename(target / "elsewhere")
    else:
        shutil.copytree(folder(house, "elsewhere"), target, dirs_exist_ok=True)
        shutil.rmtree(folder(house, "elsewhere"))

    settled(house)

    texts = {row["content"] for row in house.books.query("SELECT content FROM page_versions")}
    assert any("written meanwhile" in text for text in texts)
    assert len(house.pages()) >= 7


def test_a_copy_of_a_folder_is_named_and_takes_nothing_over(house: House):
    before = house.pages()
    shutil.copytree(folder(house, "alpha"), folder(house, "copy"))

    status = house.look_until_still()

    assert status["strangers"] == {"default/copy": "it is a copy of default/alpha; move it away"}
    assert house.pages() == before
    assert folders(house)["alpha"] is None


def test_two_folders_that_both_may_be_the_project_are_named_and_neither_is_taken(house: House):
    shutil.copytree(folder(house, "alpha"), folder(house, "one"))
    folder(house, "alpha").rename(folder(house, "two"))

    status = house.look_until_still()

    assert set(status["strangers"]) == {"default/one", "default/two"}
    assert status["held"][0]["missing"] == 6
    shutil.rmtree(folder(house, "one"))
    settled(house)
    assert folders(house)["alpha"] == "default/two"


def test_a_folder_that_says_it_is_another_project_is_not_read_as_this_one(house: House):
    before = house.pages()
    shutil.rmtree(folder(house, "beta"))
    shutil.copytree(folder(house, "alpha"), folder(house, "beta"))

    status = house.look_until_still()

    assert house.pages() == before
    assert "another project's" in status["held"][0]["reason"]
    house.write_page("notes/b.md", "more of beta\n", project="beta")
    assert not (folder(house, "beta") / "notes/b.md").exists()


def test_a_mark_that_somebody_deleted_is_written_again(house: House):
    (folder(house, "alpha") / "_meta.md").unlink()

    settled(house)

    assert "project_id" in (folder(house, "alpha") / "_meta.md").read_text()
    assert house.outside.status()["held"] == []


def test_an_unchanged_tree_is_not_read_after_its_folder_was_renamed(house: House):
    folder(house, "alpha").rename(folder(house, "elsewhere"))
    settled(house)
    house.read.clear()

    house.look_until_still()

    assert house.read == []


def test_a_reindex_takes_a_renamed_folder_in_under_its_own_name(house: House, tmp_path: Path):
    before = house.pages()
    folder(house, "alpha").rename(folder(house, "elsewhere"))
    (tmp_path / "anew").mkdir()
    shutil.copytree(house.root, tmp_path / "anew" / "wiki")
    rebuilt = House(tmp_path / "anew")
    rebuilt.books.apply(StartReindex())

    finish_task(rebuilt)

    assert rebuilt.pages() == before
    assert folders(rebuilt) == {"alpha": "default/elsewhere", "beta": None}
    settled(rebuilt)
    rebuilt.close()


@pytest.fixture
def lost(house: House, tmp_path: Path) -> Generator[House]:
    """The same wiki beside a database that knows nothing."""
    (tmp_path / "anew").mkdir()
    shutil.copytree(house.root, tmp_path / "anew" / "wiki")
    made = House(tmp_path / "anew")
    yield made
    made.close()


def test_what_agents_write_between_the_loss_of_the_database_and_the_reindex_is_kept(
    house: House, lost: House
):
    lost.write_page("notes/0.md", "written before the reindex\n")
    lost.write_page("notes/late.md", "new before the reindex\n")
    status = lost.look_until_still()
    assert "memoryd reindex --force" in status["strangers"]["default/alpha"]
    assert lost.file("notes/0.md").read_text().endswith("text 0\n")

    lost.books.apply(StartReindex(force=True))
    finish_task(lost)

    settled(lost)
    assert sorted(lost.pages()) == sorted([*house.pages(), "notes/late.md"])
    assert {"text 0\n", "written before the reindex\n"} <= {body for _, body in lost.chain("notes/0.md")}
    assert lost.file("notes/late.md").exists()
    row = lost.books.query("SELECT id FROM projects WHERE name = 'alpha'")[0]
    assert id_text(row["id"]) in lost.file("_meta.md").read_text()


def test_a_former_folder_is_not_mixed_with_the_one_that_its_project_has_by_now(house: House, lost: House):
    folder(lost, "alpha").rename(folder(lost, "elsewhere"))
    lost.write_page("notes/late.md", "new before the reindex\n")
    lost.look_until_still()

    lost.books.apply(StartReindex(force=True))
    finish_task(lost)

    assert "move its files there by hand" in lost.outside.status()["strangers"]["default/elsewhere"]
    assert list(lost.pages()) != []

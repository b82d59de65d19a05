"""A promise that something stands in the way of: tried again after longer and longer pauses, named, kept, and out of git."""

from __future__ import annotations

import logging
import os
from collections.abc import Generator
from itertools import pairwise
from pathlib import Path

import pytest

from memory_core import limits
from memory_core.commands.pages import WritePage
from memory_core.store import git_batches
from memory_core.wiki.git_batch import BatchFiles
from memory_core.wiki.git_repository import Repository
from tests.wiki.histories import files_at, new_repository, person
from tests.wiki.house import House

FILE = "default/alpha/notes/a.md"


@pytest.fixture
def house(tmp_path: Path) -> Generator[House]:
    made = House(tmp_path)
    made.write_page("notes/b.md", "other\n")
    yield made
    made.close()


def promise(house: House, body: str = "one\n", path: str = "notes/a.md") -> None:
    house.books.apply(WritePage(workspace="default", project="alpha", path=path, body=body))


def tries(house: House, monkeypatch: pytest.MonkeyPatch, seconds: float) -> list[float]:
    """When the blocked file was tried in so many seconds of a writer's turns, one a second."""
    found: list[float] = []
    install = house.installer.install

    def counted(orders):
        orders = list(orders)
        found.extend(house.books.clock.monotonic() for order in orders if order.file == FILE)
        return install(orders)

    monkeypatch.setattr(house.installer, "install", counted)
    began = house.books.clock.monotonic()
    while house.books.clock.monotonic() < began + seconds:
        house.files.install(promised=False)
        house.books.clock.advance(1)
    monkeypatch.undo()
    return [at - began for at in found]


def test_what_is_in_the_way_is_tried_after_pauses_that_double_to_a_minute(
    house: House, monkeypatch: pytest.MonkeyPatch
):
    promise(house)
    house.file("notes/a.md").mkdir()

    at = tries(house, monkeypatch, 400)

    pauses = [round(later - earlier) for earlier, later in pairwise(at)]
    assert pauses[:3] == [10, 20, 40]
    assert set(pauses[3:]) == {60}


def test_it_is_not_tried_with_every_other_page(house: House):
    promise(house)
    house.file("notes/a.md").mkdir()
    house.files.install(promised=True)
    seen: list[str] = []
    install = house.installer.install
    house.installer.install = lambda orders: install(
        [seen.append(order.file) or order for order in orders]  # type: ignore[func-returns-value]
    )

    for number in range(5):
        promise(house, path=f"notes/more-{number}.md")
        house.files.install(promised=True)

    assert len(seen) == 5
    assert FILE not in seen


def test_it_is_named_once_in_the_log_and_in_the_status_until_it_is_gone(
    house: House, caplog: pytest.LogCaptureFixture
):
    touched: list[set[str]] = []
    house.files.changed = touched.append
    promise(house)
    house.file("notes/a.md").mkdir()
    with caplog.at_level(logging.WARNING):
        for _ in range(100):
            house.files.install(promised=False)
            house.books.clock.advance(1)

    assert [row.action for row in caplog.records] == ["wiki_install_blocked"]
    assert [row["file"] for row in house.outside.status()["troubles"]] == [FILE]
    assert "folder" in house.outside.status()["troubles"][0]["trouble"]

    house.file("notes/a.md").rmdir()
    for _ in range(61):
        house.files.install(promised=False)
        house.books.clock.advance(1)

    assert house.file("notes/a.md").read_text().endswith("one\n")
    assert house.outside.status()["troubles"] == []
    assert touched == [{"default/alpha"}, {"default/alpha"}]


def test_a_newer_version_is_tried_at_once(house: House):
    promise(house)
    house.file("notes/a.md").mkdir()
    house.files.install(promised=True)
    house.file("notes/a.md").rmdir()

    promise(house, "two\n")
    house.files.install(promised=True)

    assert house.file("notes/a.md").read_text().endswith("two\n")
    assert house.files.obstacles() == {}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_what_the_system_refuses_is_named_too(house: House):
    promise(house)
    house.file("notes").chmod(0o500)
    house.files.install(promised=True)
    house.file("notes").chmod(0o700)

    assert list(house.files.obstacles()) == [FILE]


# --- the history ---


def commit(house: House, repository: Repository) -> None:
    """What the history's thread and duty do with what is open."""
    batch = house.books.transact(lambda tx: git_batches.close_open(tx, git_batches.BATCH))
    if batch is None:
        return
    with house.books.database.snapshot() as reading:
        changes = git_batches.changes_of(reading, batch)
    files = BatchFiles(house.books.database, house.root, lambda _file: None)
    made = repository.commit(files.of(changes), "m\n")
    house.books.transact(
        lambda tx: git_batches.mark_committed(tx, batch.id, made.commit_id, files=made.files)
    )


@pytest.mark.parametrize("what", ["folder", "link", "parent"])
def test_a_path_that_is_no_file_is_not_committed_until_it_is_one(house: House, tmp_path: Path, what: str):
    repository = new_repository(tmp_path)
    promise(house, path="ideas/a.md")
    file = house.file("ideas/a.md")
    if what == "parent":
        (tmp_path / "elsewhere").mkdir()
        file.parent.symlink_to(tmp_path / "elsewhere")
    elif what == "link":
        file.parent.mkdir()
        file.symlink_to("b.md")
    else:
        file.mkdir(parents=True)
    house.files.install(promised=True)
    house.books.clock.advance(limits.GIT_FILES_WAIT_SECONDS)

    commit(house, repository)

    assert "default/alpha/notes/b.md" in files_at(house.root)
    assert "default/alpha/ideas/a.md" not in files_at(house.root)
    (house.file("notes/b.md")).write_text("a person's\n")
    person(house.root, "commit", "-qam", "mine")

    (file.parent if what == "parent" else file).unlink() if what != "folder" else file.rmdir()
    house.books.clock.advance(limits.OUTBOX_RETRY_MAX_SECONDS)
    house.files.install(promised=False)
    commit(house, repository)

    assert files_at(house.root)["default/alpha/ideas/a.md"] == file.read_bytes()

"""A reindex that asks for the history: pages come back with the versions that git has of their files."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from memory_core import limits
from memory_core.clock import MICROSECONDS
from memory_core.commands.wiki_tasks import StartReindex
from memory_core.store import wiki_tasks
from memory_core.wiki import git_past
from tests.wiki.histories import person
from tests.wiki.house import House
from tests.wiki.oracle import unexplained

BEGAN = 1_900_000_000
Commit = Callable[[str], int]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The wiki of an install whose database was lost: one project, one page, and a git repository."""
    old = House(tmp_path / "old")
    old.write_page("notes/a.md", "# A\n\nzero\n")
    old.close()
    person(old.root, "init", "-q", "-b", "main")
    return old.root


@pytest.fixture
def commit(root: Path) -> Commit:
    """Commits everything, a day later than before; the commit's time in UTC microseconds."""
    days = iter(range(1_000))

    def make(message: str) -> int:
        at = BEGAN + 86_400 * next(days)
        when = {"GIT_COMMITTER_DATE": f"{at} +0200", "GIT_AUTHOR_DATE": f"{at} +0200"}
        person(root, "add", "-A")
        person(root, "commit", "-q", "--allow-empty", "-m", message, environ=when)
        return at * MICROSECONDS

    return make


@pytest.fixture
def rebuild(root: Path, tmp_path: Path) -> Generator[Callable[..., House]]:
    made: list[House] = []

    def run(*, history: bool = True, looks: int = 40) -> House:
        if not made:
            directory = tmp_path / "anew"
            directory.mkdir()
            shutil.move(root, directory / "wiki")
        else:
            made[-1].close()
        house = House(tmp_path / "anew")
        if wiki_tasks_of(house) is None:
            house.books.apply(StartReindex(history=history))
        house.look_until_still(looks)
        made.append(house)
        return house

    yield run
    for house in made[-1:]:
        house.close()


def wiki_tasks_of(house: House):
    with house.books.database.snapshot() as reading:
        return wiki_tasks.newest(reading)


def page(root: Path, path: str) -> Path:
    file = root / "default/alpha" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    return file


def chain(house: House, path: str) -> list[tuple[str, str]]:
    return [(cause, body.splitlines()[-1]) for cause, body in house.chain(path)]


def test_a_page_comes_back_with_its_versions_their_times_and_where_they_are_from(root, commit, rebuild):
    times = [commit("zero")]
    for text in ("one", "two"):
        page(root, "notes/a.md").write_text(f"# A\n\n{text}\n")
        times.append(commit(text))
    page(root, "notes/a.md").write_text("# A\n\nnot committed\n")
    house = rebuild()

    assert chain(house, "notes/a.md") == [
        ("git", "zero"),
        ("git", "one"),
        ("git", "two"),
        ("reindex", "not committed"),
    ]
    rows = house.books.query("SELECT * FROM page_versions ORDER BY seq")
    assert [row["created_at"] for row in rows[:3]] == times
    assert [row["superseded_at"] for row in rows[:2]] == times[1:]
    assert [row["supersedes"] for row in rows[1:]] == [row["id"] for row in rows[:-1]]
    assert {row["actor"] for row in rows[:3]} == {"git"}
    assert house.page("notes/a.md")["created_at"] == times[0]
    assert house.found("committed") == ["notes/a.md"]
    assert house.found("zero") == []
    counts = wiki_tasks_of(house).counts
    assert (counts["written"], counts["earlier_versions"]) == (1, 3)
    assert unexplained(house.books) == []
    assert house.books.query("PRAGMA foreign_key_check") == []


def test_a_page_that_is_as_git_has_it_has_the_time_of_its_commit(root, commit, rebuild):
    commit("zero")
    page(root, "notes/a.md").write_text("# A\n\none\n")
    last = commit("one")
    commit("nothing of this page")
    house = rebuild()

    assert chain(house, "notes/a.md") == [("git", "zero"), ("reindex", "one")]
    assert house.page("notes/a.md")["updated_at"] == last


def test_without_being_asked_a_page_comes_back_as_its_file_is(root, commit, rebuild):
    commit("zero")
    page(root, "notes/a.md").write_text("# A\n\none\n")
    commit("one")
    house = rebuild(history=False)

    assert chain(house, "notes/a.md") == [("reindex", "one")]


def test_a_rename_and_a_deletion_on_the_way_do_not_end_a_page_s_history(root, commit, rebuild):
    commit("zero")
    page(root, "notes/a.md").rename(page(root, "decisions/b.md"))
    commit("renamed")
    page(root, "decisions/b.md").unlink()
    commit("gone")
    page(root, "decisions/b.md").write_text("# B\n\nback\n")
    commit("back")
    house = rebuild()

    assert chain(house, "decisions/b.md") == [("git", "zero"), ("reindex", "back")]
    assert list(house.pages()) == ["decisions/b.md"]


def rename_folder(root: Path, old: str, new: str) -> None:
    (root / new).parent.mkdir(parents=True, exist_ok=True)
    (root / old).rename(root / new)


def test_a_renamed_folder_of_a_project_does_not_end_its_pages_history(root, commit, rebuild):
    commit("zero")
    for text in ("one", "two"):
        page(root, "notes/a.md").write_text(f"# A\n\n{text}\n")
        page(root, "notes/same.md").write_text("# A\n\nsame\n")
        page(root, "decisions/same.md").write_text("# A\n\nsame\n")
        commit(text)
    rename_folder(root, "default/alpha", "default/beta")
    commit("renamed")
    (root / "default/beta/notes/a.md").write_text("# A\n\nthree\n")
    commit("three")
    rename_folder(root, "default/beta", "work/gamma")
    commit("to another workspace")
    (root / "work/gamma/decisions/same.md").write_text("# A\n\nno more\n")
    commit("four")
    house = rebuild()

    assert chain(house, "notes/a.md") == [
        ("git", "zero"),
        ("git", "one"),
        ("git", "two"),
        ("reindex", "three"),
    ]
    assert chain(house, "decisions/same.md") == [("git", "same"), ("reindex", "no more")]
    assert chain(house, "notes/same.md") == [("reindex", "same")]


def test_a_folder_that_took_the_place_of_a_renamed_one_keeps_its_own_history(root, commit, rebuild):
    """What lay under this name before is the history of the project that was renamed."""
    commit("zero")
    page(root, "notes/a.md").write_text("# A\n\none\n")
    commit("one")
    rename_folder(root, "default/alpha", "default/beta")
    commit("renamed")
    page(root, "notes/a.md").write_text("# A\n\nanother page\n")
    commit("another one in its place")
    (root / "default/beta/notes/a.md").write_text("# A\n\ntwo\n")
    commit("two")
    house = rebuild()

    assert chain(house, "notes/a.md") == [("git", "zero"), ("git", "one"), ("reindex", "two")]


def test_what_a_merge_brought_is_one_version(root, commit, rebuild):
    commit("zero")
    person(root, "checkout", "-q", "-b", "side")
    for text in ("side one", "side two"):
        page(root, "notes/a.md").write_text(f"# A\n\n{text}\n")
        commit(text)
    person(root, "checkout", "-q", "main")
    page(root, "notes/c.md").write_text("# C\n")
    commit("c")
    person(root, "merge", "-q", "--no-edit", "side")
    house = rebuild()

    assert chain(house, "notes/a.md") == [("git", "zero"), ("reindex", "side two")]


def test_a_secret_that_somebody_committed_is_redacted_in_the_tables(root, commit, rebuild):
    page(root, "notes/a.md").write_text("# A\n\nthe word is hunter2\n")
    commit("with a secret")
    page(root, "notes/a.md").write_text("# A\n\nclean\n")
    commit("without")
    house = rebuild()

    assert chain(house, "notes/a.md") == [("git", "the word is [REDACTED]"), ("reindex", "clean")]


def test_what_is_no_text_or_too_long_is_passed_over(root, commit, rebuild, monkeypatch):
    commit("zero")
    for content in (b"\xff\xfe\x00", b"x" * 2_000_000):
        page(root, "notes/a.md").write_bytes(content)
        commit("strange")
    page(root, "notes/a.md").write_text("# A\n\nlast\n")
    commit("last")
    house = rebuild()

    assert chain(house, "notes/a.md") == [("git", "zero"), ("reindex", "last")]


def test_of_a_long_history_the_newest_versions_come(root, commit, rebuild, monkeypatch):
    monkeypatch.setattr(git_past.limits, "HISTORY_VERSIONS_MAX", 4)
    monkeypatch.setattr(git_past.limits, "HISTORY_SLICE_COMMITS", 3)
    for number in range(8):
        page(root, "notes/a.md").write_text(f"# A\n\n{number}\n")
        page(root, "notes/old.md").write_text("# Old\n")
        commit(str(number))
    house = rebuild()

    assert [text for _, text in chain(house, "notes/a.md")] == ["4", "5", "6", "7"]
    assert chain(house, "notes/old.md") == [("reindex", "# Old")]


def test_names_that_git_would_take_for_patterns_are_names(root, commit, rebuild):
    for name in ("notes/[a]*?.md", "notes/:(top)x.md", "notes/Zürich ☕.md"):
        page(root, name).write_text("# X\n\none\n")
    commit("one")
    for name in ("notes/[a]*?.md", "notes/:(top)x.md", "notes/Zürich ☕.md"):
        page(root, name).write_text("# X\n\ntwo\n")
    commit("two")
    house = rebuild()

    found = {path: chain(house, path) for path in house.pages()}
    assert found["notes/Zürich ☕.md"] == [("git", "one"), ("reindex", "two")]
    assert all(len(versions) == 2 for path, versions in found.items() if path != "notes/a.md")


def test_an_interrupted_reindex_goes_on_and_repeats_nothing(root, commit, rebuild, tmp_path, monkeypatch):
    for number in range(3):
        for name in range(20):
            page(root, f"notes/{name}.md").write_text(f"# {name}\n\n{number}\n")
        commit(str(number))
    (tmp_path / "anew").mkdir()
    shutil.move(root, tmp_path / "anew" / "wiki")
    interrupted = House(tmp_path / "anew")
    interrupted.books.apply(StartReindex(history=True))

    class Killed(BaseException):
        pass

    def killed_on_the_way(file: str) -> None:
        interrupted.read.append(file)
        if len(interrupted.read) == 12:
            raise Killed

    monkeypatch.setattr(limits, "FINDINGS_MAX", 4)
    interrupted.tree._opened = killed_on_the_way
    with pytest.raises(Killed):
        interrupted.look_until_still()
    interrupted.close()
    house = House(tmp_path / "anew")
    kept = len(house.pages())
    house.look_until_still()

    assert 0 < kept < 21
    assert {path: len(house.chain(path)) for path in house.pages()} == {
        "notes/a.md": 1,
        **{f"notes/{name}.md": 3 for name in range(20)},
    }
    assert wiki_tasks_of(house).finished_at is not None
    house.close()


def test_a_history_that_cannot_be_read_leaves_the_pages_and_says_so(root, commit, rebuild):
    commit("zero")
    page(root, "notes/a.md").write_text("# A\n\none\n")
    commit("one")
    for objects in (root / ".git/objects").glob("??/*"):
        objects.chmod(0o600)
        objects.write_bytes(b"")
    house = rebuild()

    assert chain(house, "notes/a.md") == [("reindex", "one")]
    assert [
        "earlier versions could not be read" in row["trouble"] for row in house.outside.status()["troubles"]
    ] == [True]


def test_a_wiki_without_git_comes_back_as_its_files_are(root, rebuild):
    shutil.rmtree(root / ".git")
    house = rebuild()

    assert chain(house, "notes/a.md") == [("reindex", "zero")]
    assert "has no history in git" in house.outside.status()["troubles"][0]["trouble"]

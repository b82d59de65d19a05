"""Commits of known bytes beside whatever a person does in the same repository."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from memory_core import limits
from memory_core.clock import FakeClock
from memory_core.errors import NotFound
from memory_core.wiki.git import Git, GitBusy, GitGone
from memory_core.wiki.git_repository import FileChange, Repository, message_of
from tests.wiki.histories import files_at, fsck, new_repository, person, put


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return new_repository(tmp_path / "a place" / ".hidden")


def root_of(repository: Repository) -> Path:
    return repository.git.root


def test_a_commit_holds_the_bytes_it_was_given_and_git_is_content(repository: Repository):
    names = ("default/alpha/plain.md", 'default/alpha/with "quotes" and \\.md', "default/älpha/日本 語.md")
    contents = {name: f"text of {name}\r\n\tend".encode() + b"\xff\x00" for name in names}

    made = repository.commit(
        [FileChange(file=name, content=content) for name, content in contents.items()], "message\n"
    )

    assert made.files == len(names)
    assert files_at(root_of(repository)) == contents
    assert fsck(root_of(repository)) == ""
    assert person(root_of(repository), "log", "--format=%an <%ae> %cn <%ce>") == (
        "memoryd <memoryd@localhost> memoryd <memoryd@localhost>\n"
    )


def test_a_data_directory_behind_a_symbolic_link_works(tmp_path: Path):
    real = new_repository(tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    linked = Repository(Git(tmp_path / "link" / "wiki", tmp_path / "link" / "tmp"), FakeClock())

    linked.commit([FileChange(file="a/b/c.md", content=b"x")], "m\n")

    assert files_at(root_of(real)) == {"a/b/c.md": b"x"}


def test_the_same_bytes_again_are_no_commit(repository: Repository):
    first = put(repository, a__b__c="x")

    again = repository.commit([FileChange(file="a/b/c.md", content=b"x")], "m\n")

    assert (again.commit_id, again.files) == (first, 0)
    assert person(root_of(repository), "rev-list", "--count", "--all").strip() == "1"


def test_a_file_goes_and_the_rest_stays(repository: Repository):
    put(repository, a__b__c="x", a__b__d="y")
    put(repository, a__b__c=None)

    assert files_at(root_of(repository)) == {"a/b/d.md": b"y"}
    assert person(root_of(repository), "status", "--porcelain") == ""


def test_what_a_person_staged_or_left_untracked_stays_as_it_is(repository: Repository):
    root = root_of(repository)
    put(repository, a__b__c="x")
    (root / "mine.md").write_text("staged by hand")
    (root / "loose.txt").write_text("not added")
    person(root, "add", "mine.md")

    put(repository, a__b__c="y")

    assert files_at(root) == {"a/b/c.md": b"y"}
    assert person(root, "status", "--porcelain") == "A  mine.md\n?? loose.txt\n"


def test_a_persons_own_commits_are_built_upon(repository: Repository):
    root = root_of(repository)
    put(repository, a__b__c="x")
    (root / "mine.md").write_text("mine")
    person(root, "add", "mine.md")
    person(root, "commit", "-m", "mine")

    put(repository, a__b__c="y")

    assert person(root, "log", "--format=%an").split() == ["memoryd", "Ada", "memoryd"]
    assert files_at(root) == {"a/b/c.md": b"y", "mine.md": b"mine"}


def test_a_commit_of_ours_that_a_checkout_left_behind_keeps_a_name(repository: Repository):
    root = root_of(repository)
    put(repository, a__b__c="1")
    left = put(repository, a__b__c="2")
    person(root, "checkout", "-q", "-b", "other", "HEAD~1")

    put(repository, a__b__c="3")

    assert left in person(root, "for-each-ref", "--format=%(objectname)", "refs/memoryd/kept").split()
    assert person(root, "log", "--format=%s", "other").split() == ["one", "one"]
    assert person(root, "rev-parse", "main").strip() == left


def test_while_a_person_merges_no_commit_is_made(repository: Repository):
    root = root_of(repository)
    put(repository, a__b__c="1")
    person(root, "checkout", "-q", "-b", "other")
    put(repository, a__b__c="2")
    person(root, "checkout", "-q", "main")
    put(repository, a__b__c="3")
    before = person(root, "rev-parse", "HEAD")
    person(root, "merge", "other", check=False)

    with pytest.raises(GitBusy, match="merge"):
        put(repository, a__b__d="4")

    assert person(root, "rev-parse", "HEAD") == before
    (root / "a/b/c.md").write_text("3")
    person(root, "add", "a/b/c.md")
    person(root, "commit", "-q", "-m", "merged")
    put(repository, a__b__d="4")
    assert files_at(root) == {"a/b/c.md": b"3", "a/b/d.md": b"4"}


def test_a_kill_between_index_and_branch_is_made_up_for_by_the_next_try(repository: Repository, monkeypatch):
    root = root_of(repository)
    put(repository, a__b__c="1")
    monkeypatch.setattr(Repository, "_point", _raise)
    with pytest.raises(KeyboardInterrupt):
        put(repository, a__b__c="2")
    monkeypatch.undo()

    put(repository, a__b__c="2")

    assert files_at(root) == {"a/b/c.md": b"2"}
    assert person(root, "status", "--porcelain") == ""
    assert person(root, "rev-list", "--count", "HEAD").strip() == "2"


def _raise(*_: object) -> None:
    raise KeyboardInterrupt


# --- locks ---------------------------------------------------------------------------------------


def with_clock(repository: Repository) -> tuple[Repository, FakeClock]:
    clock = FakeClock()
    return Repository(repository.git, clock), clock


@pytest.mark.parametrize("name", ["index.lock", "HEAD.lock", "refs/heads/main.lock", "packed-refs.lock"])
def test_a_lock_of_a_dead_process_is_removed_after_a_while(repository: Repository, name: str):
    put(repository, a__b__c="1")
    repository, clock = with_clock(repository)
    lock = repository.git.directory / name
    lock.write_bytes(b"")

    with pytest.raises(GitBusy):
        put(repository, a__b__c="2")
    clock.advance(limits.GIT_LOCK_STALE_SECONDS + 0.1)
    put(repository, a__b__c="2")

    assert not lock.exists()
    assert files_at(root_of(repository)) == {"a/b/c.md": b"2"}


HOLD = "import sys,time; f = open(sys.argv[1], 'x'); print('held', flush=True); sys.stdin.read()"


def test_a_lock_of_a_living_process_is_waited_for(repository: Repository):
    put(repository, a__b__c="1")
    repository, clock = with_clock(repository)
    lock = repository.git.directory / "index.lock"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        for _ in range(3):
            clock.advance(limits.GIT_LOCK_STALE_SECONDS * 10)
            with pytest.raises(GitBusy):
                put(repository, a__b__c="2")
        assert lock.exists()
    finally:
        holder.communicate()

    put(repository, a__b__c="2")

    assert files_at(root_of(repository)) == {"a/b/c.md": b"2"}


def test_our_own_lock_from_a_life_before_is_removed_at_once(repository: Repository):
    put(repository, a__b__c="1")
    (repository.git.directory / "index.lock").write_bytes(b"memoryd 4194999\n")

    put(repository, a__b__c="2")

    assert files_at(root_of(repository)) == {"a/b/c.md": b"2"}


# --- messages ------------------------------------------------------------------------------------


def test_no_text_above_can_pretend_to_be_a_trailer(repository: Repository):
    repository.commit(
        [FileChange(file="a/b/c.md", content=b"x")],
        message_of("Batch-Id: evil\n\nBatch-Id: evil", ["Batch-Id: evil"], batch_ids=["good"], epoch=7),
    )

    assert [entry.batch_ids for entry in repository.log(1)] == [("good",)]
    assert repository.find_batch("evil") is None


def test_the_history_of_one_page_is_only_its_own(repository: Repository):
    put(repository, "first", a__b__c="1", a__b__d="1")
    put(repository, "second", a__b__d="2")

    assert [entry.subject for entry in repository.log(9, "a/b/c.md")] == ["first"]
    assert [entry.subject for entry in repository.log(9, "a/b/*.md")] == []


def test_rendered_files_and_drafts_are_nothing_to_commit(repository: Repository, tmp_path: Path):
    root = tmp_path / "a place" / ".hidden" / "wiki"
    folder = root / "default/alpha"
    (folder / "notes").mkdir(parents=True)
    for name in ("index.md", "log-2031-05.md", ".t-1", ".x-1", "notes/.x-2"):
        (folder / name).write_text("x\n")
    (folder / "notes/index.md").write_text("a page\n")

    assert person(root, "status", "--porcelain", "-uall") == "?? default/alpha/notes/index.md\n"


def test_a_repository_that_is_gone_is_no_lock_to_wait_for(repository: Repository):
    shutil.rmtree(repository.git.directory)

    with pytest.raises(GitGone, match="not there any more"):
        repository.commit([FileChange(file="a/b/c.md", content=b"x")], "m\n")
    assert repository.git.identity() is None


@pytest.mark.parametrize(
    "made", [(), ("refs",), ("refs", "HEAD")], ids=["nothing", "refs", "all but objects"]
)
def test_a_repository_that_is_just_being_made_has_no_history_yet(tmp_path: Path, made: tuple[str, ...]):
    repository = new_repository(tmp_path / "whole")
    half = Repository(Git(tmp_path / "half", tmp_path), FakeClock())
    half.git.directory.mkdir(parents=True)
    for part in made:
        (root_of(repository) / ".git" / part).rename(half.git.directory / part)

    with pytest.raises(NotFound, match="no history yet"):
        half.log(10)
    with pytest.raises(NotFound, match="no history yet"):
        half.content("0" * 40, "a.md", 100)

    half.create()
    assert half.log(10) == []


def test_a_first_commit_that_comes_between_two_looks_at_a_history_is_found(
    repository: Repository, monkeypatch
):
    run, made = Git.run, []

    def interrupted(git: Git, *arguments: str, **more: Any) -> bytes:
        if arguments[0] == "symbolic-ref" and not made:
            made.append(None)  # before the commit, which looks itself
            made[0] = repository.commit([FileChange(file="a.md", content=b"one")], "m\n").commit_id
        return run(git, *arguments, **more)

    monkeypatch.setattr(Git, "run", interrupted)

    assert repository.head() == made[0] is not None

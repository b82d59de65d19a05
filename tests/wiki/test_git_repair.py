"""A damaged repository: gone back to what is whole, or begun anew, with the old one kept."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from memory_core.clock import FakeClock
from memory_core.wiki.git_repair import Repaired, is_sound, repair, tidy
from memory_core.wiki.git_repository import Repository
from tests.wiki.histories import files_at, fsck, new_repository, person, put


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return new_repository(tmp_path / "data")


def repaired(repository: Repository, tmp_path: Path, *known: str) -> Repaired:
    return repair(repository, tmp_path / "aside", known, FakeClock())


def truncate_object(repository: Repository, object_id: str, size: int = 0) -> None:
    path = repository.git.directory / "objects" / object_id[:2] / object_id[2:]
    path.chmod(0o600)
    with path.open("r+b") as file:
        file.truncate(size)


def test_a_whole_repository_is_sound_and_an_empty_one_too(repository: Repository):
    assert is_sound(repository)
    put(repository, a__b__c="1")
    assert is_sound(repository)


@pytest.mark.parametrize("what", ["HEAD", "HEAD^{tree}", "HEAD:a/b/c.md"])
@pytest.mark.parametrize("size", [0, 7])
def test_with_its_newest_objects_cut_off_it_goes_back_to_the_commit_before(
    repository: Repository, tmp_path: Path, what: str, size: int
):
    first = put(repository, a__b__c="1")
    put(repository, a__b__c="2")
    newest = person(repository.git.root, "rev-parse", what).strip()
    known = [person(repository.git.root, "rev-parse", "HEAD").strip(), first]
    truncate_object(repository, newest, size)
    assert not is_sound(repository)

    done = repaired(repository, tmp_path, *known)

    assert is_sound(repository)
    if not done.is_rerooted:
        assert person(repository.git.root, "rev-parse", "HEAD").strip() == first
        assert first[:12] in done.note
    put(repository, a__b__c="3")
    assert files_at(repository.git.root) == {"a/b/c.md": b"3"}
    assert fsck(repository.git.root) == ""
    # An empty object file is nothing: it is dropped, and the history before is kept.
    assert not (size == 0 and done.is_rerooted)


@pytest.mark.parametrize("ref", ["", "garbage\n", "0" * 40 + "\n"])
def test_a_broken_branch_points_to_the_newest_known_commit_again(
    repository: Repository, tmp_path: Path, ref: str
):
    put(repository, a__b__c="1")
    newest = put(repository, a__b__c="2")
    (repository.git.directory / "refs/heads/main").write_text(ref)

    done = repaired(repository, tmp_path, newest)

    assert not done.is_rerooted
    assert person(repository.git.root, "rev-parse", "HEAD").strip() == newest
    assert fsck(repository.git.root) == ""


def test_what_cannot_be_saved_is_kept_aside_and_the_history_begins_anew(
    repository: Repository, tmp_path: Path
):
    newest = put(repository, a__b__c="1")
    for folder in (repository.git.directory / "objects").glob("??"):
        for file in folder.iterdir():
            file.chmod(0o600)
            file.write_bytes(b"rubbish")

    done = repaired(repository, tmp_path, newest)

    assert done.is_rerooted
    (kept,) = (tmp_path / "aside").iterdir()
    assert str(kept) in done.note
    assert (kept / "refs/heads/main").read_text().strip() == newest
    put(repository, a__b__c="1")
    assert fsck(repository.git.root) == ""


def test_a_broken_index_is_made_anew(repository: Repository, tmp_path: Path):
    newest = put(repository, a__b__c="1")
    (repository.git.directory / "index").write_bytes(b"DIRC rubbish")

    repaired(repository, tmp_path, newest)

    put(repository, a__b__c="2")
    assert person(repository.git.root, "status", "--porcelain") == ""


def test_a_repository_without_its_skeleton_works_again(repository: Repository, tmp_path: Path):
    newest = put(repository, a__b__c="1")
    (repository.git.directory / "HEAD").unlink()

    repaired(repository, tmp_path, newest)

    put(repository, a__b__c="2")
    assert files_at(repository.git.root) == {"a/b/c.md": b"2"}


def test_random_damage_never_ends_in_a_repository_that_cannot_be_committed_to(tmp_path: Path):
    seed = random.randrange(1 << 30)
    chance = random.Random(seed)
    for number in range(6):
        repository = new_repository(tmp_path / str(number))
        known = [put(repository, a__b__c=str(n), a__b__d=str(n * n)) for n in range(3)]
        files = [path for path in repository.git.directory.rglob("*") if path.is_file()]
        for file in chance.sample(files, 3):
            file.chmod(0o600)
            content = file.read_bytes()
            file.write_bytes(content[: chance.randrange(len(content) + 1)] + chance.randbytes(3))

        if not is_sound(repository):
            repaired(repository, tmp_path / str(number), *reversed(known))

        put(repository, a__b__c="last")
        assert files_at(repository.git.root)["a/b/c.md"] == b"last", seed
        assert fsck(repository.git.root) == "", seed


def test_many_objects_are_packed(repository: Repository, monkeypatch: pytest.MonkeyPatch):
    put(repository, a__b__c="1")
    assert not tidy(repository)
    monkeypatch.setattr("memory_core.limits.GIT_LOOSE_OBJECTS_MAX", 3)

    assert tidy(repository)

    assert "count: 0" in person(repository.git.root, "count-objects", "-v")
    assert files_at(repository.git.root) == {"a/b/c.md": b"1"}

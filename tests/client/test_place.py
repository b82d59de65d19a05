"""A session in a subdirectory or a worktree belongs to the repository's project."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from client.place import repository_of


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "it's main"
    git(tmp_path, "init", "-q", str(root))
    git(
        root, "-c", "user.name=m", "-c", "user.email=m@m.test", "commit", "-q", "--allow-empty", "-m", "first"
    )
    return root


def git(where: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(where), *arguments], check=True, capture_output=True)


def test_a_subdirectory_belongs_to_its_repository(repository: Path):
    inside = repository / "src/deep"
    inside.mkdir(parents=True)

    assert repository_of(str(inside)) == repository_of(f"{repository}/") == str(repository)


def test_a_worktree_belongs_to_the_main_repository(repository: Path, tmp_path: Path):
    git(repository, "worktree", "add", "-q", str(tmp_path / "wt"))
    (tmp_path / "wt/src").mkdir()

    assert repository_of(str(tmp_path / "wt/src")) == str(repository)


def test_a_git_file_that_is_no_worktrees_marks_a_repository_of_its_own(tmp_path: Path):
    (tmp_path / ".git").write_text("gitdir: ../.git/modules/x\n")

    assert repository_of(str(tmp_path)) == str(tmp_path)


@pytest.mark.parametrize("directory", ["", "relative", "/", "/no/such/place", "C:\\src"])
def test_elsewhere_there_is_none(directory: str):
    assert repository_of(directory) == ""

"""Real repositories in a directory of their own, and git as a person runs it there."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from memory_core.clock import SystemClock
from memory_core.wiki.git import Git
from memory_core.wiki.git_repository import FileChange, Repository, message_of


def person(root: Path, *arguments: str, environ: Mapping[str, str] | None = None, check: bool = True) -> str:
    """What a person's own git says; with a name to commit under, and without their configuration."""
    done = subprocess.run(
        ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org", *arguments],
        cwd=root,
        env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", **(environ or {})},
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    assert not check or done.returncode == 0, done.stderr
    return done.stdout


def fsck(root: Path) -> str:
    """What `git fsck --full --strict` complains of; empty when it is content."""
    done = subprocess.run(
        ["git", "fsck", "--full", "--strict", "--no-dangling"],
        cwd=root,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    return done.stderr if done.returncode or done.stderr.strip() else ""


def files_at(root: Path, commit: str = "HEAD") -> dict[str, bytes]:
    """All files of a commit with their bytes."""
    names = person(root, "ls-tree", "-r", "-z", "--name-only", commit).split("\0")
    return {
        name: subprocess.run(
            ["git", "cat-file", "blob", f"{commit}:{name}"], cwd=root, capture_output=True, check=True
        ).stdout
        for name in names
        if name
    }


def new_repository(directory: Path) -> Repository:
    """A repository without commits below `directory/wiki`."""
    root, temporary = directory / "wiki", directory / "tmp"
    root.mkdir(parents=True, exist_ok=True)
    temporary.mkdir(exist_ok=True)
    made = Repository(Git(root, temporary), SystemClock())
    made.create()
    return made


def put(repository: Repository, batch: str = "one", **contents: str | None) -> str:
    """Commit files (`__` stands for a slash, `.md` is added) and write them into the work tree too; the commit."""
    changes = []
    for name, text in contents.items():
        file = name.replace("__", "/") + ".md"
        path = repository.git.root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            path.unlink(missing_ok=True)
        else:
            path.write_text(text)
        changes.append(FileChange(file=file, content=None if text is None else text.encode()))
    message = message_of(batch, [], batch_ids=[batch], epoch=1)
    return repository.commit(changes, message).commit_id

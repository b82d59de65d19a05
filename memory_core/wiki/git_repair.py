"""A repository that is damaged: brought back to its newest whole commit, or begun anew with the old one kept aside.

Nothing is at stake but the history: the pages stand in the database and in their files.
"""

from __future__ import annotations

import logging
import re
import shutil
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from memory_core import limits
from memory_core.clock import MICROSECONDS, Clock
from memory_core.wiki.git import GitBusy, GitFailed, GitMissing, GitRefused, GitStorage
from memory_core.wiki.git_repository import Repository

logger = logging.getLogger(__name__)

_HEAD = re.compile(r"ref: (refs/heads/[^\s\x00-\x1f~^:?*\[\\]+)\n?")
_OBJECT_FOLDER = re.compile(r"[0-9a-f]{2}")


@dataclass(frozen=True, kw_only=True)
class Repaired:
    """`note` says for people what was done; `is_rerooted` that the history begins anew."""

    note: str
    is_rerooted: bool


def is_sound(repository: Repository) -> bool:
    """Whether git finds nothing wrong with any object or ref. Reads everything."""
    try:
        repository.head()
        repository.git.run(
            "fsck", "--full", "--strict", "--no-dangling", "--no-progress", seconds=limits.GIT_REPAIR_SECONDS
        )
    except (GitBusy, GitMissing, GitRefused, GitStorage):
        raise
    except GitFailed:
        return False
    return True


def repair(repository: Repository, aside: Path, known: Iterable[str], clock: Clock) -> Repaired:
    """Make the repository usable. `known` are commits of ours, newest first; `aside` is where a damaged one goes."""
    kept = _copy_aside(repository, aside, clock)
    with suppress(GitFailed):
        repository.create()  # what is missing of the skeleton comes back; what is there stays
    _drop_hollow(repository)
    for candidate in dict.fromkeys(known):
        if _go_back(repository, candidate):
            note = (
                f"the history was damaged; it goes on from commit {candidate[:12]}, the newest whole one; "
                f"what was there is kept in {kept}"
            )
            logger.error(note, extra={"action": "git_repaired", "commit": candidate})
            return Repaired(note=note, is_rerooted=False)
    shutil.rmtree(repository.git.directory)
    repository.create()
    note = f"the history was damaged and begins anew; what was there is kept in {kept}"
    logger.error(note, extra={"action": "git_rerooted", "kept": str(kept)})
    return Repaired(note=note, is_rerooted=True)


def _drop_hollow(repository: Repository) -> None:
    """Remove what holds nothing: files of objects and refs without a byte, and the index, which is made anew."""
    directory = repository.git.directory
    for folder in (directory / "objects").glob("??"):
        if _OBJECT_FOLDER.fullmatch(folder.name):
            for file in folder.iterdir():
                if file.stat().st_size == 0:
                    file.unlink()
    for file in (directory / "refs").rglob("*"):
        if file.is_file() and file.stat().st_size == 0:
            file.unlink()
    with suppress(FileNotFoundError):
        (directory / "index").unlink()


def _go_back(repository: Repository, commit: str) -> bool:
    """Let HEAD's branch be at `commit`, if all that it needs is there; false when that does not make a whole repository."""
    git = repository.git
    try:
        # Raises where any object that the commit leads to is missing.
        git.run("rev-list", "--objects", "--quiet", commit, seconds=limits.GIT_REPAIR_SECONDS)
        git.run("cat-file", "-e", f"{commit}^{{tree}}")
        branch = _branch(git.directory)
        for name in (branch, *_own_refs(repository)):
            if name:
                (git.directory / name).unlink(missing_ok=True)
        git.run("update-ref", "--no-deref", branch or "HEAD", commit)
        # What leads to missing objects has to go: reflogs, and commits that nothing names any more.
        shutil.rmtree(git.directory / "logs", ignore_errors=True)
        git.run("read-tree", commit)
        git.run("prune", "--expire=now", seconds=limits.GIT_REPAIR_SECONDS)
        return is_sound(repository)
    except (GitMissing, GitRefused, GitStorage):
        raise
    except GitFailed:
        return False


def _branch(directory: Path) -> str:
    """The branch that HEAD names, read plainly (git refuses to say when the branch is broken); empty for none."""
    named = _HEAD.fullmatch((directory / "HEAD").read_text(encoding="utf-8", errors="replace"))
    return named[1] if named and ".." not in named[1] else ""


def _own_refs(repository: Repository) -> list[str]:
    """Refs of ours; a person's own are left to them."""
    root = repository.git.directory
    return [str(file.relative_to(root)) for file in (root / "refs" / "memoryd").rglob("*") if file.is_file()]


def _copy_aside(repository: Repository, aside: Path, clock: Clock) -> Path:
    aside.mkdir(mode=0o700, exist_ok=True)
    stamp = datetime.fromtimestamp(clock.now_us() // MICROSECONDS, tz=UTC).strftime("%Y%m%dT%H%M%SZ")
    target = aside / stamp
    number = 1
    while target.exists():
        number += 1
        target = aside / f"{stamp}-{number}"
    shutil.copytree(repository.git.directory, target, symlinks=True)
    return target


def tidy(repository: Repository) -> bool:
    """Pack loose objects and packs when there are many; whether it was needed. Prunes nothing that is newer than two weeks."""
    counted = dict(
        line.split(": ", 1)
        for line in repository.git.run("count-objects", "-v").decode().splitlines()
        if ": " in line
    )
    if int(counted["count"]) < limits.GIT_LOOSE_OBJECTS_MAX and int(counted["packs"]) < limits.GIT_PACKS_MAX:
        return False
    repository.git.run("gc", "--quiet", "--prune=2.weeks.ago", seconds=limits.GIT_REPAIR_SECONDS)
    return True

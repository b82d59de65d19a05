"""Locks of the wiki's repository: ours while a commit is made, and those that dead processes left behind."""

from __future__ import annotations

import logging
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from memory_core import limits
from memory_core.clock import Clock
from memory_core.wiki.git import GitBusy, GitGone

logger = logging.getLogger(__name__)

_OURS = b"memoryd "
_PROCESSES = Path("/proc")


class Locks:
    """Remembers since when it has seen each foreign lock; one instance per process."""

    def __init__(self, directory: Path, clock: Clock) -> None:
        """`directory` is the repository (`.git`)."""
        self._directory = directory
        self._clock = clock
        #: By path: inode and change of the lock, and when it was first seen (monotonic seconds).
        self._seen: dict[Path, tuple[tuple[int, int], float]] = {}

    @contextmanager
    def index(self) -> Generator[None]:
        """Hold the index: while it lasts no `git commit`, `checkout` or `pull` of a person begins to change anything.

        Raises `GitBusy` when somebody has it, or holds any other lock, and `GitGone` where there is no repository to lock.
        """
        self.clear_stale()
        lock = self._directory / "index.lock"
        try:
            descriptor = os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        except FileExistsError as error:
            raise GitBusy("another git process holds the index") from error
        except FileNotFoundError as error:
            raise GitGone(f"the wiki's history {self._directory} is not there any more") from error
        try:
            # So that the next writer knows whose it was, should this one be killed here.
            os.write(descriptor, _OURS + str(os.getpid()).encode() + b"\n")
            os.close(descriptor)
            yield
        finally:
            lock.unlink(missing_ok=True)

    def clear_stale(self) -> None:
        """Remove locks whose makers are dead. Raises `GitBusy` when one is left that a living process may hold."""
        found = list(self._locks())
        self._seen = {lock: seen for lock, seen in self._seen.items() if lock in found}
        for lock in found:
            if self._is_stale(lock):
                lock.unlink(missing_ok=True)
                self._seen.pop(lock, None)
                logger.warning(
                    "a lock that a dead git process left behind was removed",
                    extra={"action": "git_lock_removed", "file": lock.name},
                )
            else:
                raise GitBusy(f"another git process holds {lock.name}")

    def _locks(self) -> Generator[Path]:
        yield from self._directory.glob("*.lock")
        yield from (self._directory / "refs").rglob("*.lock")

    def _is_stale(self, lock: Path) -> bool:
        try:
            state = os.lstat(lock)
            with lock.open("rb") as file:
                is_ours = file.read(len(_OURS)) == _OURS
        except FileNotFoundError:
            return True
        except OSError:
            return False
        if is_ours:
            return True  # there is one writer, and it holds none now
        mark, now = (state.st_ino, state.st_ctime_ns), self._clock.monotonic()
        before = self._seen.get(lock)
        if before is None or before[0] != mark:
            self._seen[lock] = before = (mark, now)
        age = now - before[1]
        if not _PROCESSES.joinpath("self", "fd").exists():
            return age >= limits.GIT_LOCK_BLIND_SECONDS
        return age >= limits.GIT_LOCK_STALE_SECONDS and not _is_at_work(self._directory)


def _is_at_work(directory: Path) -> bool:
    """Whether a living process of ours works in this repository: a git in its tree, or anybody with a file of it open."""
    root = directory.parent.resolve()
    for process in _PROCESSES.iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            with suppress(OSError):
                if _works_in(process, root):
                    return True
    return False


def _works_in(process: Path, root: Path) -> bool:
    """A process that ends meanwhile, or is another user's, raises `OSError`."""
    name = (process / "comm").read_text(errors="replace").strip()
    if name.startswith("git") and _is_below((process / "cwd").readlink(), root):
        return True
    inside = root / ".git"
    for descriptor in (process / "fd").iterdir():
        with suppress(FileNotFoundError):
            if _is_below(descriptor.readlink(), inside):
                return True
    return False


def _is_below(path: Path, root: Path) -> bool:
    return path == root or root in path.parents

"""Putting promised files on disk, one by one, so that a crash at any step loses nothing.

For row number n of the outbox the new bytes are written to `.t-n`, synced, renamed to `.x-n` (which is
therefore always a whole file), and exchanged with the page's file; then `.x-n` holds what was there
before. If that is a state that the writer itself made, it is deleted. If not, somebody edited the page: the
bytes are handed back and `.x-n` stays until they are committed as a version of their own; their row then
promises exactly these bytes, and the next pass exchanges them back.

Bytes that can be no page (not UTF-8, too long) are nobody's edit to take in: their file is left alone, or put back where the exchange
took it out, and the order waits until the file is gone or can be a page.

What was taken out while a program has it open for writing stays too, as `.x-n` or `.x-n-held`, and its row with it, until
the program closes it or writes: a deleted file would take along what the program is about to save.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from memory_core import limits
from memory_core.domain.project import Project
from memory_core.domain.wiki_file import FileStat, text_of
from memory_core.errors import Invalid
from memory_core.wiki.exchange import (
    Away,
    Blocked,
    Hook,
    Occupied,
    directory,
    is_open_for_writing,
    put_new,
    read_plain,
    swap,
    write_synced,
)
from memory_core.wiki.folders import Home, check_home, make_home
from memory_core.wiki.layout import META, TEMPORARY, parts_of
from memory_core.wiki.spellings import Spellings
from memory_core.wiki.walk import stat_of

logger = logging.getLogger(__name__)

#: How often a file that comes and goes under our hands is tried.
_TRIES = 8


@dataclass(frozen=True, kw_only=True)
class Order:
    """One promised file: `file` (relative to the wiki root) is to hold bytes of hash `sha256`, or to go away (None).

    `content` are those bytes, except for a version that came from outside with a secret in it: of
    such a one only the redacted text is kept, the true bytes lie in `.x-<seq>`.
    """

    seq: int
    file: str
    #: Hex SHA-256 of each state that the writer made.
    expected: frozenset[str]
    sha256: bytes | None
    content: bytes | None
    #: Whose folder it lies in, where that is known: then nothing is put into a folder that is not the project's.
    project: Project | None = None
    #: No file of that project was ever seen: its folder may be made.
    is_new: bool = True
    #: Nor of any project.
    is_empty_wiki: bool = True
    #: Of what somebody else put there, what can be taken in.
    max_bytes: int = limits.OUTSIDE_PAGE_MAX_BYTES
    #: A page's file: it is not made beside one whose name is the same in another spelling.
    is_page: bool = False


class Result(StrEnum):
    #: The file is as promised.
    INSTALLED = "installed"
    #: Bytes that the writer did not make were there; nothing of them is lost.
    FOUND = "found"
    #: The file is as promised; what was there before is open in a program that may still write into it.
    HELD = "held"
    #: Something that is no file or can be no page, or the system, stood in the way; to be tried again later.
    BLOCKED = "blocked"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    order: Order
    result: Result
    #: What is on disk now (None: no file), or what was found.
    sha256: bytes | None = None
    #: The found bytes, at most `EXTERNAL_FILE_MAX_BYTES` of them.
    found: bytes = b""
    reason: str = ""
    #: Whether it is blocked because a directory is not there, and not by what lies in its place.
    is_away: bool = False


class Unfit(Blocked):
    """There are bytes that can be no page; they were left as they are."""


class Installer:
    """The file side of the outbox: knows the wiki root, no database."""

    def __init__(self, root: Path, *, hook: Hook = lambda _step: None) -> None:
        self._root = root
        self._hook = hook
        #: Files that could be no page as they looked: they are not read again as long as they look like that.
        self._unfit: dict[str, tuple[Order, FileStat, str]] = {}

    def install(self, orders: Iterable[Order]) -> list[Outcome]:
        """Carry out each order; one that cannot be carried out is `BLOCKED` and holds no other one up."""
        away: dict[str, int] = {}
        spellings = Spellings(self._root)
        outcomes = [self._install(order, away, spellings) for order in orders]
        for reason, files in away.items():
            logger.warning(
                "%d files wait: %s",
                files,
                reason,
                extra={"action": "wiki_folder_away", "files": files, "reason": reason},
            )
        return outcomes

    def _install(self, order: Order, away: dict[str, int], spellings: Spellings) -> Outcome:
        try:
            parts = parts_of(order.file)
            if order.project is not None:
                self._prepare(order.project, order)
            if order.is_page and (twin := spellings.other(order.file)) is not None:
                raise Blocked(f"{twin} is there, which differs from it only in the spelling of its name")
            with directory(self._root, parts[:-1], create=order.sha256 is not None) as folder:
                return self._step(order, parts[-1], folder)
        except FileNotFoundError:
            # Only a deletion does not make its folder.
            return Outcome(order=order, result=Result.INSTALLED)
        except Away as error:
            away[str(error)] = away.get(str(error), 0) + 1
            return Outcome(order=order, result=Result.BLOCKED, reason=str(error), is_away=True)
        except (Blocked, Invalid, OSError) as error:
            if isinstance(error, Occupied) and order.sha256 is None:
                # The file is to go away, and where it was there is none.
                return Outcome(order=order, result=Result.INSTALLED)
            return Outcome(order=order, result=Result.BLOCKED, reason=str(error))

    def _prepare(self, project: Project, order: Order) -> None:
        """See to it that the order's folder is the project's; a deletion makes none."""
        try:
            home = check_home(self._root, project, is_new=order.is_new, is_empty_wiki=order.is_empty_wiki)
            if order.sha256 is not None and home is not Home.OWN:
                make_home(self._root, project)
        except Occupied as error:
            raise Blocked(f"the folder of its project, or {META} in it: {error}") from error

    def _step(self, order: Order, name: str, folder: int) -> Outcome:
        known = self._unfit.pop(order.file, None)
        if known is not None and known[:2] == (order, _stat(name, folder)):
            self._unfit[order.file] = known
            raise Blocked(known[2])
        try:
            return _Step(order, name, folder, self._hook).run()
        except Unfit as error:
            if (stat := _stat(name, folder)) is not None:
                self._unfit[order.file] = (order, stat, str(error))
            raise
        except Occupied as error:
            raise Blocked(str(error)) from error

    def leftovers(self) -> list[str]:
        """Temporary files below the root, relative to it; symbolic links are not followed."""
        return sorted(
            str((Path(folder) / name).relative_to(self._root))
            for folder, _, names in os.walk(self._root)
            for name in names
            if name.startswith(TEMPORARY)
        )

    def hash_of(self, file: str) -> bytes | None:
        """The SHA-256 of a file, None if there is none or it is no plain file."""
        parts = parts_of(file)
        try:
            with directory(self._root, parts[:-1], create=False) as folder:
                state = read_plain(parts[-1], folder, 0)
        except (FileNotFoundError, Blocked):
            return None
        return None if state is None else state[0]

    def discard(self, file: str) -> None:
        """Delete a leftover whose bytes are known to be kept elsewhere."""
        parts = parts_of(file)
        with directory(self._root, parts[:-1], create=False) as folder, suppress(FileNotFoundError):
            os.unlink(parts[-1], dir_fd=folder)


class _Step:
    """One order in its open folder."""

    def __init__(self, order: Order, name: str, folder: int, hook: Hook) -> None:
        self._order = order
        self._name = name
        self._folder = folder
        self._hook = hook
        self._draft = f"{TEMPORARY[0]}{order.seq}"
        self._taken = f"{TEMPORARY[1]}{order.seq}"
        self._spare = f"{TEMPORARY[1]}{order.seq}-old"
        self._held = f"{TEMPORARY[1]}{order.seq}-held"
        #: Leftovers that hold nothing new but are open for writing.
        self._open: list[str] = []

    def run(self) -> Outcome:
        staged: str | None = None
        is_staged_open = False
        for leftover in (self._held, self._taken, self._spare):
            is_open, state = self._look_at(leftover)
            if state is None:
                continue
            if not self._is_ours(state[0]):
                return self._found_in(leftover, state)
            if state[0] == self._order.sha256 and staged is None:
                staged, is_staged_open = leftover, is_open
            else:
                self._drop(leftover, is_open)
        if staged is None:
            self._make_room()
        try:
            current = read_plain(self._name, self._folder, limits.EXTERNAL_FILE_MAX_BYTES)
        except Occupied:
            if self._order.sha256 is not None:
                raise
            return self._done(None)  # the file is to go away, and under its name there is none
        if current is not None and not self._is_ours(current[0]):
            if problem := self._problem_of(current):
                raise Unfit(problem)
            return self._found(current)
        if self._order.sha256 is None:
            return self._remove(current is not None)
        # One that is open is put in place even where the same bytes lie: what is written into it is then seen.
        if current is not None and current[0] == self._order.sha256 and not is_staged_open:
            if staged is not None:
                self._unlink(staged)
            return self._done(current[0])
        return self._put(staged)

    def _put(self, staged: str | None) -> Outcome:
        promised = self._order.sha256 if staged else self._stage()
        source = staged or self._taken
        for _ in range(_TRIES):
            self._hook("link")
            if put_new(source, self._name, self._folder):
                self._sync()
                self._unlink(source)
                return self._done(promised)
            self._hook("exchange")
            try:
                swap(source, self._name, self._folder, self._spare)
            except FileNotFoundError:
                continue  # it was there for the link and is gone for the exchange
            self._sync()
            return self._look_at_taken(source, promised)
        raise Blocked(f"{self._name!a} comes and goes too fast")

    def _stage(self) -> bytes:
        content = self._order.content or b""
        self._hook("write")
        write_synced(self._draft, content, self._folder)
        self._hook("stage")
        os.rename(self._draft, self._taken, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        return hashlib.sha256(content).digest()

    def _look_at_taken(self, taken: str, promised: bytes | None) -> Outcome:
        self._hook("look")
        is_open, state = self._look_at(taken)
        if state is not None and state[0] != promised and not self._is_ours(state[0]):
            return self._found_in(taken, state)
        self._drop(taken, is_open)
        return self._done(promised)

    def _remove(self, is_there: bool) -> Outcome:
        if is_there:
            self._hook("take")
            with suppress(FileNotFoundError):
                os.rename(self._name, self._taken, src_dir_fd=self._folder, dst_dir_fd=self._folder)
            self._sync()
            is_open, state = self._look_at(self._taken)
            if state is not None and not self._is_ours(state[0]):
                return self._found_in(self._taken, state)
            self._drop(self._taken, is_open)
        return self._done(None)

    def _look_at(self, taken: str) -> tuple[bool, tuple[bytes, bytes] | None]:
        """Whether a file that was taken out is open for writing, and then what it holds: in the other order a save in
        between would be missed."""
        is_open = is_open_for_writing(taken, self._folder)
        try:
            return is_open, read_plain(taken, self._folder, limits.EXTERNAL_FILE_MAX_BYTES)
        except Occupied:
            # Somebody put a link or a folder there at the very moment of the exchange: it goes back as it was.
            self._give_back(taken)
            raise

    def _drop(self, name: str, is_open: bool) -> None:
        if is_open:
            self._open.append(name)
        else:
            self._unlink(name)

    def _make_room(self) -> None:
        """Free the name for what will be taken out next. The names are three: one program after another can be waited for,
        not two at once."""
        for name in self._open:
            if name == self._held:
                continue
            if self._held in self._open:
                raise Blocked(f"two earlier states of {self._name!a} are open for writing in other programs")
            os.rename(name, self._held, src_dir_fd=self._folder, dst_dir_fd=self._folder)

    def _is_ours(self, sha256: bytes) -> bool:
        return sha256 == self._order.sha256 or sha256.hex() in self._order.expected

    def _sync(self) -> None:
        self._hook("sync")
        os.fsync(self._folder)

    def _unlink(self, name: str) -> None:
        self._hook("unlink")
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self._folder)

    def _problem_of(self, state: tuple[bytes, bytes]) -> str | None:
        return text_of(state[1], self._order.max_bytes)[1]

    def _found_in(self, taken: str, state: tuple[bytes, bytes]) -> Outcome:
        """What was found in the file `taken`; where it can be no page it gets its name back, and `Unfit` is raised."""
        if problem := self._problem_of(state):
            self._give_back(taken)
            raise Unfit(problem)
        return self._found(state)

    def _give_back(self, taken: str) -> None:
        """Undo that `taken` was taken out. What has the name by now is looked at by the next pass, unless it can be no page
        either: then both stay where they are. Raises `Blocked` where something that is no file has the name."""
        self._hook("give back")
        if not put_new(taken, self._name, self._folder):
            current = read_plain(self._name, self._folder, limits.EXTERNAL_FILE_MAX_BYTES)
            if current is not None and not self._is_ours(current[0]) and (why := self._problem_of(current)):
                raise Unfit(f"{why}; an earlier state of it lies beside it as {taken}")
            with suppress(FileNotFoundError):
                swap(taken, self._name, self._folder, self._spare)
            self._sync()
            return
        self._sync()
        self._unlink(taken)

    def _found(self, state: tuple[bytes, bytes]) -> Outcome:
        return Outcome(order=self._order, result=Result.FOUND, sha256=state[0], found=state[1])

    def _done(self, sha256: bytes | None) -> Outcome:
        self._hook("done")
        result = Result.HELD if self._open else Result.INSTALLED
        return Outcome(order=self._order, result=result, sha256=sha256)


def _stat(name: str, folder: int) -> FileStat | None:
    try:
        return stat_of(os.stat(name, dir_fd=folder, follow_symlinks=False))
    except FileNotFoundError:
        return None

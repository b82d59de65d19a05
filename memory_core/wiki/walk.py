"""Looking at the wiki's files below a directory descriptor, never through a symbolic link."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from memory_core import limits
from memory_core.domain.drafts import is_draft
from memory_core.domain.wiki_file import TOO_LARGE, FileStat, Obstacle, is_candidate, text_of
from memory_core.errors import Invalid
from memory_core.wiki.exchange import Blocked, Occupied, directory, occupied_by
from memory_core.wiki.layout import parts_of


@dataclass(kw_only=True)
class Tree:
    """What lies in one project's directory: candidates for pages, and what was passed over."""

    #: Relative to the wiki root.
    files: dict[str, FileStat] = field(default_factory=dict[str, FileStat])
    links: list[str] = field(default_factory=list[str])
    #: What is neither a plain file nor a plain folder, and folders that are named like a page; and what they are.
    strange: dict[str, str] = field(default_factory=dict[str, str])
    #: Files and folders that may not be looked at: nothing is known of what is in there.
    closed: list[str] = field(default_factory=list[str])

    def is_closed(self, file: str) -> bool:
        return any(file == place or file.startswith(f"{place}/") for place in self.closed)


@dataclass(frozen=True, kw_only=True)
class ReadFile:
    """A file read at rest: it looked the same before and after."""

    stat: FileStat
    sha256: bytes
    #: At most as much as was asked for.
    content: bytes


def stat_of(found: os.stat_result) -> FileStat:
    return FileStat(found.st_size, found.st_mtime_ns, found.st_ino)


class WikiTree:
    """Read access to the files below the wiki root. Opens nothing for writing."""

    def __init__(self, root: Path, *, opened: Callable[[str], None] = lambda _file: None) -> None:
        """`opened` is told of each file that is read."""
        self._root = root
        self._opened = opened
        #: Files that were read so far.
        self.reads = 0

    def projects(self) -> Generator[str]:
        """The directories two levels down, `<workspace>/<project>`, hidden ones left out."""
        for workspace in self._folders([]):
            for project in self._folders([workspace]):
                yield f"{workspace}/{project}"

    def _folders(self, parts: list[str]) -> list[str]:
        with (
            suppress(OSError, Blocked),
            directory(self._root, parts, create=False) as folder,
            os.scandir(folder) as entries,
        ):
            return sorted(
                entry.name
                for entry in entries
                if not entry.name.startswith(".")
                and entry.is_dir(follow_symlinks=False)
                and _is_text(entry.name)
            )
        return []

    def tree(self, project: str, is_page: Callable[[str], bool] = lambda _inside: False) -> Tree:
        """All files of one project's directory; empty when it is not there. `is_page` knows the files (relative to that
        directory) of the pages that there are."""
        found = Tree()
        try:
            with (
                suppress(FileNotFoundError, Blocked),
                directory(self._root, parts_of(project), create=False) as folder,
            ):
                self._walk(folder, project, "", found, is_page)
        except PermissionError:
            found.closed.append(project)
        return found

    def _walk(
        self, folder: int, project: str, inside: str, found: Tree, is_page: Callable[[str], bool]
    ) -> None:
        deeper: list[str] = []
        with os.scandir(folder) as entries:
            for entry in entries:
                name = entry.name
                if name.startswith(".") or not _is_text(name):
                    continue
                if entry.is_symlink():
                    found.links.append(f"{project}/{inside}{name}")
                elif entry.is_dir(follow_symlinks=False):
                    deeper.append(name)
                    if is_candidate(inside + name):
                        found.strange[f"{project}/{inside}{name}"] = str(occupied_by(stat.S_IFDIR))
                elif not is_draft(name) or is_page(inside + name):
                    may_be = is_candidate(inside + name, is_page)
                    _note_file(entry, f"{project}/{inside}{name}", found, is_page=may_be)
        for name in deeper:
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            try:
                descriptor = os.open(name, flags, dir_fd=folder)
            except OSError as error:
                if error.errno in (errno.EACCES, errno.EPERM):
                    found.closed.append(f"{project}/{inside}{name}")
                elif error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                    raise
                continue  # else it went, or became something else, just now
            try:
                self._walk(descriptor, project, f"{inside}{name}/", found, is_page)
            finally:
                os.close(descriptor)

    def is_there(self, folder: str) -> bool:
        """Whether a directory (relative to the wiki root) is there."""
        with suppress(OSError, Blocked), directory(self._root, parts_of(folder), create=False):
            return True
        return False

    def look(self, file: str) -> FileStat | None:
        """One file without reading it; None when there is no plain file."""
        try:
            parts = parts_of(file)
            with directory(self._root, parts[:-1], create=False) as folder:
                state = os.stat(parts[-1], dir_fd=folder, follow_symlinks=False)
        except (OSError, Blocked, Invalid):
            return None
        return stat_of(state) if stat.S_ISREG(state.st_mode) else None

    def occupied(self, file: str) -> str | None:
        """What stands, in place of a plain file or on the way to it, where a page's file belongs; None when nothing does.

        None too where nothing can be known, because the disk is away or does not let us look.
        """
        try:
            parts = parts_of(file)
            with directory(self._root, parts[:-1], create=False) as folder:
                mode = os.stat(parts[-1], dir_fd=folder, follow_symlinks=False).st_mode
        except Occupied as error:
            return str(error)
        except (OSError, Blocked, Invalid):
            return None
        return None if stat.S_ISREG(mode) else str(occupied_by(mode))

    def obstacle(self, file: str) -> Obstacle | None:
        """Why a page's file cannot be put there: something that is no file, or a file that can be no page."""
        if (reason := self.occupied(file)) is not None:
            return Obstacle(reason, is_file=False)
        stat = self.look(file)
        if stat is None:
            return None
        if stat.size > limits.OUTSIDE_PAGE_MAX_BYTES:
            return Obstacle(TOO_LARGE, is_file=True)
        read = self.read(file, limits.OUTSIDE_PAGE_MAX_BYTES)
        problem = text_of(read.content)[1] if read else None
        return Obstacle(problem, is_file=True) if problem else None

    def why_unreadable(self, file: str) -> str | None:
        """Why a plain file that is there cannot be read; None when it can, or is not there."""
        if self.look(file) is None:
            return None
        try:
            parts = parts_of(file)
            with directory(self._root, parts[:-1], create=False) as folder:
                flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
                os.close(os.open(parts[-1], flags, dir_fd=folder))
        except FileNotFoundError:
            return None
        except (OSError, Blocked) as error:
            return f"it cannot be read: {getattr(error, 'strerror', None) or error}"
        return None

    def read(self, file: str, max_bytes: int) -> ReadFile | None:
        """A file's bytes; None when it is not there, cannot be read, or changed while it was read."""
        parts = parts_of(file)
        try:
            with directory(self._root, parts[:-1], create=False) as folder:
                flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
                descriptor = os.open(parts[-1], flags, dir_fd=folder)
        except (OSError, Blocked):
            return None
        before = os.fstat(descriptor)
        if not stat.S_ISREG(before.st_mode):
            os.close(descriptor)
            return None
        self.reads += 1
        self._opened(file)
        with open(descriptor, "rb") as opened:
            try:
                content = opened.read(max_bytes + 1)
                digest = hashlib.sha256(content)
                while more := opened.read(1 << 20):
                    digest.update(more)
            except OSError:
                return None
            if stat_of(os.fstat(descriptor)) != stat_of(before):
                return None
        return ReadFile(stat=stat_of(before), sha256=digest.digest(), content=content)


def _note_file(entry: os.DirEntry[str], file: str, found: Tree, *, is_page: bool) -> None:
    try:
        if not is_page and entry.is_file(follow_symlinks=False):
            return
        state = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return
    except PermissionError:
        found.closed.append(file)
        return
    if not stat.S_ISREG(state.st_mode):
        found.strange[file] = str(occupied_by(state.st_mode))
    elif is_page:
        found.files[file] = stat_of(state)


def _is_text(name: str) -> bool:
    """Whether a name is UTF-8: others cannot be pages, nor be told to anybody."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True

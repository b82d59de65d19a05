"""Changing one file below the wiki root without ever losing what somebody else put there.

All names are resolved against open directory descriptors, one component at a time, never through a
symbolic link, so nothing outside the root is touched whatever the tree looks like.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import hashlib
import logging
import os
import signal
import stat
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from memory_core import limits
from memory_core.errors import CoreError

logger = logging.getLogger(__name__)

_RENAME_NOREPLACE, _RENAME_EXCHANGE = 1, 2
#: What a file system, or a kernel, without the exchange answers.
_NO_EXCHANGE = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}
#: What a file system without hard links answers.
_NO_LINK = {errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.EXDEV}

#: Called with the name of each step before it is made; tests raise from it or kill the process in it.
Hook = Callable[[str], None]


class Blocked(CoreError):
    """Something that is no plain file or directory stands in the way; nothing was changed."""

    code = "blocked"


class Away(Blocked):
    """A directory that is known is not there, or is another one: its disk is not mounted, or somebody moved it."""

    code = "away"


class Occupied(Blocked):
    """What is there, or on the way there, is no plain file and no folder."""


#: What a name can stand for beside a plain file.
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
)


def occupied_by(mode: int) -> Occupied:
    """The error for a page's file whose name stands for something else; `mode` is that of `lstat`."""
    kind = next((name for matches, name in _KINDS if matches(mode)), "a device")
    return Occupied(f"it is {kind}, not a file; move it away, or give the page another path")


@contextmanager
def directory(root: Path, parts: list[str], *, create: bool) -> Generator[int]:
    """A descriptor of the directory `parts` below `root`.

    Missing directories are made (0700) and synced when `create`, else `FileNotFoundError`. Raises `Occupied`
    where a symbolic link or a file stands in the way, and `Away` where `root` itself is missing.
    """
    try:
        descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError as error:
        # A disk that is not mounted, maybe: nothing is known of any file, and nothing is made in its place.
        raise Away("the wiki's own directory is not there") from error
    try:
        for part in parts:
            deeper = _enter(descriptor, part, create)
            os.close(descriptor)
            descriptor = deeper
        yield descriptor
    finally:
        os.close(descriptor)


def _enter(parent: int, name: str, create: bool) -> int:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(name, flags, dir_fd=parent)
    except FileNotFoundError:
        if not create:
            raise
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise Occupied(
                f"{name!a} is a symbolic link or a file where a folder belongs; move it away, or give the page another path"
            ) from error
        raise
    with suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=parent)
        os.fsync(parent)
    return _enter(parent, name, create=False)


def read_plain(name: str, dir_fd: int, max_bytes: int | None = None) -> tuple[bytes, bytes] | None:
    """The SHA-256 of a whole file and its (first `max_bytes`) bytes; None if there is none, `Occupied` if it is no plain file."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=dir_fd)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise occupied_by(_mode_of(name, dir_fd)) from error
        raise
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        # Before a file object is made of it: of a folder none can be made, and the descriptor would stay open.
        os.close(descriptor)
        raise occupied_by(mode)
    with open(descriptor, "rb") as file:
        digest, kept = hashlib.sha256(), bytearray()
        while chunk := file.read(limits.MIB):
            digest.update(chunk)
            room = len(chunk) if max_bytes is None else max_bytes - len(kept)
            kept += chunk[: max(room, 0)]
    return digest.digest(), bytes(kept)


def _mode_of(name: str, dir_fd: int) -> int:
    try:
        return os.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return 0


def is_open_for_writing(name: str, dir_fd: int) -> bool:
    """Whether some program can still write into a plain file through a descriptor or a mapping that it has.

    Known by asking for a read lease, which Linux grants only where nobody can (fcntl(2), "Leases"). False
    where leases do not exist: another system, a network disk, a file of another user.
    """
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=dir_fd)
    except OSError:
        return False
    try:
        # Whoever opens the file right now breaks the lease: told by a signal that does nothing, not by SIGIO, which kills.
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except AttributeError:
        return False
    except OSError as error:
        return error.errno == errno.EAGAIN
    finally:
        os.close(descriptor)
    return False


def write_synced(name: str, content: bytes, dir_fd: int) -> None:
    """Write a temporary file of our own, whatever was left under its name, and sync it."""
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=dir_fd)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(name, flags, 0o600, dir_fd=dir_fd), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def put_new(source: str, target: str, dir_fd: int) -> bool:
    """Give `source` the name `target` too if no file has it; False if one does. `source` may stay: unlink it."""
    try:
        os.link(source, target, src_dir_fd=dir_fd, dst_dir_fd=dir_fd, follow_symlinks=False)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINK:
            raise
        return _put_new_without_links(source, target, dir_fd)
    return True


def _put_new_without_links(source: str, target: str, dir_fd: int) -> bool:
    try:
        _renameat2(source, target, dir_fd, _RENAME_NOREPLACE)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_EXCHANGE:
            raise
        _say_fallback("no hard links")
        if os.access(target, os.F_OK, dir_fd=dir_fd, follow_symlinks=False):
            return False
        os.rename(source, target, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)
    return True


def swap(source: str, target: str, dir_fd: int, spare: str) -> None:
    """Exchange two files in one step. `FileNotFoundError` when one of them is gone.

    Where the system cannot, this says so and does it in steps over the name `spare`; an editor that saves
    by rename between them can then lose its save.
    """
    try:
        _renameat2(source, target, dir_fd, _RENAME_EXCHANGE)
    except OSError as error:
        if error.errno not in _NO_EXCHANGE:
            raise
        _say_fallback("no atomic exchange")
        # A link first: at no step is the page without a file, and what was there has a name until it is looked at.
        os.link(target, spare, src_dir_fd=dir_fd, dst_dir_fd=dir_fd, follow_symlinks=False)
        os.rename(source, target, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)
        os.rename(spare, source, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)


def _say_fallback(what: str) -> None:
    logger.warning(
        "this file system has %s: an edit saved at the very moment of a page write can be lost",
        what,
        extra={"action": "wiki_exchange_fallback", "reason": what},
    )


def _renameat2(source: str, target: str, dir_fd: int, flags: int) -> None:
    library: Any = ctypes.CDLL(None, use_errno=True)
    function = getattr(library, "renameat2", None)
    if function is None:
        raise OSError(errno.ENOSYS, "renameat2 is not there")
    if function(dir_fd, os.fsencode(source), dir_fd, os.fsencode(target), flags) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), target)

"""A private copy of a database that another program may have open: the original is only ever read.

A copy of several files is one of one moment only if none of them changed meanwhile; it is made again until that is so.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from memory_core.errors import Conflict, Invalid

NAME: Final = "copy.sqlite3"
_MAGIC: Final = b"SQLite format 3\0"
#: What may hold a part of the database: committed pages that are not in it yet, or the way back from a transaction that was cut.
_SIDECARS: Final = ("-wal", "-journal")
_TRIES: Final = 5
_PAUSE_SECONDS: Final = 0.5
#: Besides the files themselves: what recovering the copy may write.
_SPARE_BYTES: Final = 16 * 2**20
_LOCK: Final = "lock"


@contextmanager
def private_copy(database: Path, room: Path, sleep: Callable[[float], None]) -> Iterator[Path]:
    """A copy of `database` in a directory of its own below `room`, which goes with the block. What runs that were killed
    left there goes too. Raises `Invalid` for what is no database, `Conflict` for one that never stands still."""
    original = _checked(database)
    room.mkdir(mode=0o700, parents=True, exist_ok=True)
    _sweep(room)
    place = room / secrets.token_hex(8)
    place.mkdir(mode=0o700)
    lock = os.open(place / _LOCK, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield _copied(original, place, sleep)
    finally:
        shutil.rmtree(place, ignore_errors=True)
        os.close(lock)


def assets_of(database: Path) -> Path:
    """Where the program keeps the files that a database refers to."""
    name = "assets" if database.name == "emelex.sqlite3" else f"{database.name}.assets"
    return database.parent / name


def _checked(database: Path) -> Path:
    try:
        original = database.resolve(strict=True)
        found = original.stat()
        if not stat.S_ISREG(found.st_mode):
            raise Invalid(
                f"{database} is no file; name the database, usually ~/.emelex/memory/emelex.sqlite3"
            )
        with original.open("rb") as file:
            head = file.read(len(_MAGIC))
    except OSError as error:
        raise Invalid(f"it cannot be read ({error.strerror})") from error
    if head != _MAGIC:
        raise Invalid("it is no SQLite database")
    return original


def _copied(original: Path, place: Path, sleep: Callable[[float], None]) -> Path:
    target = place / NAME
    for attempt in range(_TRIES):
        if attempt:
            sleep(_PAUSE_SECONDS)
        before = _state(original)
        _check_room(before, place)
        try:
            _copy_files(original, target)
        except FileNotFoundError:
            # A sidecar went while it was copied.
            continue
        except OSError as error:
            raise Invalid(f"it cannot be copied to {place} ({error.strerror})") from error
        if _state(original) == before:
            return target
    raise Conflict("it changes all the time: stop the program that writes it, then import again")


def _copy_files(original: Path, target: Path) -> None:
    for suffix in ("", *_SIDECARS):
        source, copy = Path(f"{original}{suffix}"), Path(f"{target}{suffix}")
        copy.unlink(missing_ok=True)
        if suffix and not source.exists():
            continue
        with source.open("rb") as read, copy.open("xb") as written:
            copy.chmod(0o600)
            shutil.copyfileobj(read, written, 2**20)


def _state(original: Path) -> dict[str, tuple[int, int, int]]:
    """Of each file that there is: which one it is, how long, and when it was written last."""
    found: dict[str, tuple[int, int, int]] = {}
    for suffix in ("", *_SIDECARS):
        try:
            told = Path(f"{original}{suffix}").stat()
        except FileNotFoundError:
            continue
        found[suffix] = (told.st_ino, told.st_size, told.st_mtime_ns)
    return found


def _check_room(state: dict[str, tuple[int, int, int]], place: Path) -> None:
    wanted = sum(size for _, size, _ in state.values()) + _SPARE_BYTES
    free = shutil.disk_usage(place).free
    if free < wanted:
        raise Invalid(
            f"{place} has room for {free} bytes, and a copy takes {wanted}; free some, or set XDG_STATE_HOME"
        )


def _sweep(room: Path) -> None:
    """Copies whose makers are dead: nobody holds their lock."""
    for place in room.iterdir():
        try:
            lock = os.open(place / _LOCK, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            continue
        else:
            shutil.rmtree(place, ignore_errors=True)
        finally:
            os.close(lock)

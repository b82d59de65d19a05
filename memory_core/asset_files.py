"""Files that events refer to, each under the SHA-256 of its bytes: `assets/<64 hex digits>`, 0600, never changed.

The gate writes a file before the writer books it, and the writer takes a row away before the file goes. Both hold the
directory's lock meanwhile (`shared` and `alone`), or a file could be collected between being found again and being booked.
A crash may leave a file without a row, never a row whose file was collected.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import secrets
import stat
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from memory_core import limits
from memory_core.durable import sync_directory
from memory_core.errors import Corrupt, TooLarge, Unavailable

_PUBLISHED = re.compile(r"[0-9a-f]{64}")
_UNFINISHED = re.compile(r"\.asset-[0-9a-f]{32}")
_LOCK = ".lock"


@dataclass(frozen=True, kw_only=True)
class Received:
    """A whole, synced file that has no name of its own yet."""

    unfinished: Path
    sha256: bytes
    bytes: int


@dataclass(frozen=True, kw_only=True)
class Stray:
    """An entry of the directory, and what tells whether it is still the same one later."""

    name: str
    inode: int
    #: Nanoseconds since 1970.
    changed_at: int
    size: int
    #: None for a file that was never finished; False: its bytes are not those of its name, or it is no plain file.
    is_whole: bool | None = None


class AssetFiles:
    def __init__(self, directory: Path) -> None:
        self._directory = directory

    # --- taking one in: the gate ---

    def receive(self, chunks: Iterable[bytes]) -> Received:
        """Write what comes into a file. Raises `TooLarge` past `limits.ASSET_MAX_BYTES` and `Unavailable` when the disk does
        not take it; nothing is left then."""
        unfinished = self._directory / f".asset-{secrets.token_hex(16)}"
        digest, size = hashlib.sha256(), 0
        try:
            with _created(unfinished) as file:
                # Whoever collects leaves a file alone that somebody still writes.
                fcntl.flock(file, fcntl.LOCK_EX)
                for chunk in chunks:
                    size += len(chunk)
                    if size > limits.ASSET_MAX_BYTES:
                        raise TooLarge(f"an asset has at most {limits.ASSET_MAX_BYTES // limits.MIB} MiB")
                    digest.update(chunk)
                    file.write(chunk)
                file.flush()
                os.fsync(file.fileno())
        except BaseException as error:
            unfinished.unlink(missing_ok=True)
            if isinstance(error, OSError):
                raise Unavailable(f"an asset could not be stored: {error.strerror or error}") from error
            raise
        return Received(unfinished=unfinished, sha256=digest.digest(), bytes=size)

    def publish(self, received: Received) -> None:
        """Give it its name, under the shared lock. Where the name is taken the file there is read whole: raises `Corrupt` if it is
        not what its name says."""
        target = self._directory / received.sha256.hex()
        try:
            try:
                os.link(received.unfinished, target, follow_symlinks=False)
            except FileExistsError:
                # Young again, so that a collection that looked before leaves it alone.
                os.utime(target, follow_symlinks=False)
            for _ in self.read(received.sha256, received.bytes):
                pass
            sync_directory(self._directory)
        except OSError as error:
            raise Unavailable(f"an asset could not be stored: {error.strerror or error}") from error
        finally:
            received.unfinished.unlink(missing_ok=True)

    # --- reading ---

    def read(self, sha256: bytes, size: int) -> Iterator[bytes]:
        """The bytes, read twice: they are given out only when all of them have the digest. Raises `Corrupt`."""
        with self._opened(sha256, size) as file:
            if _digest(file) != sha256:
                raise Corrupt(f"asset {sha256.hex()} does not hold what its name says")
            file.seek(0)
            while chunk := file.read(limits.ASSET_CHUNK_BYTES):
                yield chunk

    @contextmanager
    def _opened(self, sha256: bytes, size: int) -> Generator[IO[bytes]]:
        path = self._directory / sha256.hex()
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            raise Corrupt(f"the file of asset {path.name} cannot be read: {error.strerror}") from error
        with open(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            if not _is_plain(found) or found.st_size != size:
                raise Corrupt(f"the file of asset {path.name} is not the one that was stored")
            yield file

    # --- collecting ---

    def strays(
        self,
        *,
        older_than_ns: int,
        unfinished_older_than_ns: int,
        known: Iterable[bytes],
        after: str = "",
    ) -> tuple[list[Stray], str]:
        """Old entries without a row, checked, and the name to go on after (empty: all were seen).

        Times are nanoseconds since 1970. `known` are the digests that have a row. At most `limits.ASSET_GC_ENTRIES` entries are
        looked at.
        """
        names = self._names(after)
        seen, kept = names[: limits.ASSET_GC_ENTRIES], set(known)
        found: list[Stray] = []
        for name in seen:
            is_unfinished = _UNFINISHED.fullmatch(name) is not None
            if is_unfinished or (_PUBLISHED.fullmatch(name) and bytes.fromhex(name) not in kept):
                stray = self._looked_at(name)
                before = unfinished_older_than_ns if is_unfinished else older_than_ns
                if stray is not None and stray.changed_at <= before:
                    found.append(self._checked(stray))
        return found, seen[-1] if len(names) > len(seen) else ""

    def names(self, *, after: str = "") -> list[bytes]:
        """Digests that have a file, of the entries that `strays` would look at next."""
        seen = self._names(after)[: limits.ASSET_GC_ENTRIES]
        return [bytes.fromhex(name) for name in seen if _PUBLISHED.fullmatch(name)]

    def _names(self, after: str) -> list[str]:
        return sorted(path.name for path in self._directory.iterdir() if path.name > after)

    def remove(self, stray: Stray) -> bool:
        """Unlink it, under the lock held `alone`, if it is still the entry that was looked at; whether it was."""
        now = self._looked_at(stray.name)
        if now is None or (now.inode, now.changed_at, now.size) != (
            stray.inode,
            stray.changed_at,
            stray.size,
        ):
            return False
        path = self._directory / stray.name
        if _UNFINISHED.fullmatch(stray.name) and _is_being_written(path):
            return False
        path.unlink(missing_ok=True)
        return True

    def sync(self) -> None:
        sync_directory(self._directory)

    def _looked_at(self, name: str) -> Stray | None:
        try:
            found = (self._directory / name).lstat()
        except FileNotFoundError:
            return None
        return Stray(name=name, inode=found.st_ino, changed_at=found.st_mtime_ns, size=found.st_size)

    def _checked(self, stray: Stray) -> Stray:
        if _UNFINISHED.fullmatch(stray.name):
            return stray
        sha256 = bytes.fromhex(stray.name)
        try:
            with self._opened(sha256, stray.size) as file:
                is_whole = _digest(file) == sha256
        except Corrupt:
            is_whole = False
        return Stray(
            name=stray.name,
            inode=stray.inode,
            changed_at=stray.changed_at,
            size=stray.size,
            is_whole=is_whole,
        )

    # --- the lock ---

    @contextmanager
    def shared(self) -> Generator[None]:
        """Held from giving a file its name until its row is booked."""
        with self._locked(fcntl.LOCK_SH):
            yield

    @contextmanager
    def alone(self) -> Generator[bool]:
        """Held while files go; False, at once, where somebody takes one in."""
        try:
            with self._locked(fcntl.LOCK_EX | fcntl.LOCK_NB):
                yield True
        except BlockingIOError:
            yield False

    @contextmanager
    def _locked(self, how: int) -> Generator[None]:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self._directory / _LOCK, flags, 0o600)
        try:
            fcntl.flock(descriptor, how)
            yield
        finally:
            os.close(descriptor)


def _created(path: Path) -> IO[bytes]:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return open(os.open(path, flags, 0o600), "wb")


def _digest(file: IO[bytes]) -> bytes:
    digest = hashlib.sha256()
    while chunk := file.read(limits.ASSET_CHUNK_BYTES):
        digest.update(chunk)
    return digest.digest()


def _is_plain(found: os.stat_result) -> bool:
    """A regular file of ours that nobody else may touch."""
    return (
        stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) == 0o600
    )


def _is_being_written(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False

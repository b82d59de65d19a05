"""Proof of being alone: a file lock held for life, and a test that locks on this disk mean anything at all."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

from memory_core.errors import Invalid, NotAlone

#: Run by a second process: the exit code says which locks it was given although the first process holds them.
_INTRUDER = """
import fcntl, os, sys
got = 0
for bit, lock, path in ((1, fcntl.flock, sys.argv[1]), (2, fcntl.lockf, sys.argv[2])):
    try:
        lock(os.open(path, os.O_RDWR), fcntl.LOCK_EX | fcntl.LOCK_NB)
        got |= bit
    except BlockingIOError:
        pass
sys.exit(64 + got)
"""
_REFUSED_BOTH = 64
_INTRUDER_SECONDS = 30.0


class WriterLock:
    """Held until the process ends, however it ends."""

    def __init__(self, run_dir: Path) -> None:
        """Raises `NotAlone` with the holder's pid, `Invalid` where the file system offers no locks."""
        self._path = run_dir / "writer.lock"
        self._descriptor = _open(self._path)
        try:
            _lock(fcntl.flock, self._descriptor, self._path)
        except BlockingIOError as error:
            holder = os.pread(self._descriptor, 32, 0).decode("ascii", "replace").strip()
            os.close(self._descriptor)
            raise NotAlone(f"another writer owns {run_dir.parent}: process {holder or 'unknown'}") from error
        record = str(os.getpid()).ljust(16).encode()
        os.pwrite(self._descriptor, record, 0)

    def self_test(self) -> None:
        """Let a second process try to take both kinds of lock, ours and SQLite's. `Invalid` when it gets one.

        A file system whose locks lie lets two writers in, and two writers damage the database at once.
        """
        trial = self._path.with_name("writer.lock-test")
        # A file of its own: closing any descriptor of a file drops all POSIX locks that a process has on it.
        descriptor = _open(trial)
        try:
            _lock(fcntl.lockf, descriptor, trial)
            child = subprocess.run(
                [sys.executable, "-I", "-S", "-c", _INTRUDER, str(self._path), str(trial)],
                check=False,
                capture_output=True,
                text=True,
                timeout=_INTRUDER_SECONDS,
            )
        finally:
            os.close(descriptor)
        if child.returncode != _REFUSED_BOTH:
            raise Invalid(
                f"file locks below {self._path.parent.parent} do not keep a second process out "
                f"({child.returncode}: {json.dumps(child.stderr[-200:])}); two writers would damage the database. "
                "Choose a data directory on a local disk"
            )

    def release(self) -> None:
        os.close(self._descriptor)


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def _lock(kind, descriptor: int, path: Path) -> None:
    try:
        kind(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError as error:
        raise Invalid(
            f"{path} cannot be locked ({error.strerror}); the data directory needs a disk with working file locks"
        ) from error

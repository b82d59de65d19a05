"""What the shim remembers of one session between its hooks: the last sequence number, and whether it was given context."""

from __future__ import annotations

import fcntl
import os
import re

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_RECORD_BYTES = 32
_KEPT_SECONDS = 7 * 86_400


class SessionState:
    """One small record behind a lock: hooks of one session may run at the same time."""

    def __init__(self, state_dir: str, client: str, session: str) -> None:
        self._directory = os.path.join(state_dir, "sessions")
        self._path = os.path.join(self._directory, f"{_file_name(client)}-{_file_name(session)}")

    def next_seq(self, now_us: int) -> tuple[int, bool]:
        """A number greater than all before it in this session, and whether context was given already.

        It starts from the clock, so that a lost record does not let it fall back.
        """
        with self._locked() as record:
            seq = max(record.seq + 1, now_us // 1000)
            record.write(seq, given=record.given)
            return seq, record.given

    def mark_given(self) -> None:
        with self._locked() as record:
            record.write(record.seq, given=True)

    def _locked(self) -> _Record:
        os.makedirs(self._directory, mode=0o700, exist_ok=True)
        descriptor = os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        return _Record(descriptor)


class _Record:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        words = os.pread(descriptor, _RECORD_BYTES, 0).split()
        usable = len(words) == 2 and words[0].isdigit()
        self.seq = int(words[0]) if usable else 0
        self.given = usable and words[1] == b"1"

    def write(self, seq: int, *, given: bool) -> None:
        os.pwrite(self._descriptor, f"{seq:029d} {int(given)}\n".encode(), 0)

    def __enter__(self) -> _Record:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


def forget_old(state_dir: str, now_us: int) -> None:
    """Drop the records of sessions that were silent for a week."""
    directory = os.path.join(state_dir, "sessions")
    try:
        with os.scandir(directory) as entries:
            old = [e.path for e in entries if now_us / 1e6 - e.stat().st_mtime > _KEPT_SECONDS]
    except FileNotFoundError:
        return
    for path in old:
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass


def _file_name(text: str) -> str:
    if _PLAIN.fullmatch(text):
        return text
    import hashlib

    return "x" + hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:40]

"""What the history's thread says of itself, in a small file that the gate reads."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from memory_core.clock import Clock, rfc3339

FILE = "history.json"
#: More than it takes; the file keeps its size.
_RECORD_BYTES = 8_192
_HELD_BACK_SHOWN = 5
#: Nothing new is said again only after this time.
_REPEAT_SECONDS = 5.0
_STOPPED = ("missing", "refused")


class HistoryState:
    """`run/history.json`, overwritten in place and not synced: it needs no room on a full disk.

    `status`: starting, ok, busy (somebody else is at work in the repository), waiting (for the disk), failed,
    repairing, missing (no git program) or refused (a repository that is left alone).
    """

    def __init__(self, run_dir: Path, clock: Clock) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._descriptor = os.open(run_dir / FILE, flags, 0o600)
        self._clock = clock
        self._held: dict[str, None] = {}
        self._values: dict[str, Any] = {}
        self.git_version = ""
        #: What people should know of a repair.
        self.note = ""
        self._status = "starting"
        self._said: tuple[object, ...] = ()
        self._said_at = 0.0
        self.say("starting")

    @property
    def is_working(self) -> bool:
        """Whether commits are made, now or soon."""
        return self._status not in _STOPPED

    def say(self, status: str, *, reason: str = "", commit: str | None = None) -> None:
        self._status = status
        if commit is not None:
            self._values["last_commit"] = commit
        self._write(reason)

    def committed(self, commit: str, *, batch_id: str, files: int, seconds: float) -> None:
        self._status = "ok"
        self._values |= {
            "last_commit": commit,
            "last_batch": batch_id,
            "last_commit_at": rfc3339(self._clock.now_us()),
            "last_commit_files": files,
            "last_commit_seconds": round(seconds, 3),
        }
        self._write("")

    def held_back(self, file: str) -> None:
        if len(self._held) < _HELD_BACK_SHOWN:
            self._held[file] = None

    def _write(self, reason: str) -> None:
        saying = (self._status, reason, self.note, len(self._held), *self._values.values())
        now = self._clock.monotonic()
        if saying == self._said and now - self._said_at < _REPEAT_SECONDS:
            return
        self._said, self._said_at = saying, now
        content = {
            "status": self._status,
            "version": self.git_version,
            "reason": reason[:300],
            "note": self.note,
            "held_back": list(self._held),
            **self._values,
            "pid": os.getpid(),
            "written_at": now,
        }
        kept = {key: value for key, value in content.items() if value not in ("", [])}
        record = json.dumps(kept, ensure_ascii=False)
        with suppress(OSError):
            os.pwrite(self._descriptor, record.encode()[:_RECORD_BYTES].ljust(_RECORD_BYTES), 0)

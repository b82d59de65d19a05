"""The in-progress mark: what the writer was doing when it died, for the next one to read.

One in-place write to a preallocated file, without a sync: it has to outlive the process, not the power.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from memory_core.domain.command import Envelope

_RECORD_BYTES = 320


def key_of(envelope: Envelope) -> str:
    """A short name of a command: its principal and id, hashed to a fixed length."""
    return hashlib.blake2b(envelope.id + envelope.principal.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Tries:
    """How often one command was tried alone and did not end well."""

    key: str
    #: It raised.
    exceptions: int = 0
    #: The process died under it, nobody knows why.
    deaths: int = 0
    #: The supervisor killed the process under it because it hung.
    hangs: int = 0
    #: It runs at this moment; a process that ends meanwhile died under it.
    is_under_way: bool = False

    @property
    def counted(self) -> int:
        """Tries that bring it nearer to its end at once; deaths are judged apart."""
        return self.exceptions + self.hangs


@dataclass(frozen=True, kw_only=True)
class Mark:
    #: Stream id of the last entry of the batch at hand: careful mode ends behind it. Empty: none.
    until: str = ""
    #: The one command at hand, in careful mode.
    tries: Tries | None = None
    #: Who wrote it.
    pid: int = 0


class MarkFile:
    """The file itself; one per writer process. What a process that died left in it is counted when it is opened:
    as a hang if `hung_pid`, the process that the supervisor last killed for hanging, wrote it.
    """

    def __init__(self, path: Path, *, hung_pid: int | None = None) -> None:
        self._pid = os.getpid()
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._descriptor = os.open(path, flags, 0o600)
        self.last = _counted(self._read(), hung_pid)
        self._write(self.last)

    def batch(self, until: str) -> None:
        """A batch begins whose last entry is `until`."""
        self._write(Mark(until=until, pid=self._pid))

    def single(self, tries: Tries) -> None:
        """One command begins alone, after these tries; the batch that it is of stays marked."""
        self._write(replace(self.last, tries=tries, pid=self._pid))

    def single_done(self) -> None:
        self._write(replace(self.last, tries=None))

    def clear(self) -> None:
        self._write(Mark())

    def close(self) -> None:
        os.close(self._descriptor)

    def _write(self, mark: Mark) -> None:
        self.last = mark
        os.pwrite(self._descriptor, json.dumps(asdict(mark)).ljust(_RECORD_BYTES).encode(), 0)

    def _read(self) -> Mark:
        try:
            record = json.loads(os.pread(self._descriptor, _RECORD_BYTES, 0))
            tries = record["tries"]
            return Mark(
                until=record["until"], tries=None if tries is None else Tries(**tries), pid=record["pid"]
            )
        except (ValueError, KeyError, TypeError):
            return Mark()


def _counted(left: Mark, hung_pid: int | None) -> Mark:
    tries = left.tries
    if tries is None or not tries.is_under_way:
        return left
    if left.pid == hung_pid:
        tries = replace(tries, hangs=tries.hangs + 1)
    else:
        tries = replace(tries, deaths=tries.deaths + 1)
    return replace(left, tries=replace(tries, is_under_way=False))

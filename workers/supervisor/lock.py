"""One supervisor for each process of a data directory, and no leftovers of the one before it."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from memory_core.clock import Clock
from memory_core.errors import NotAlone

logger = logging.getLogger(__name__)

_PROC = Path("/proc")
_GONE_SECONDS = 5.0


class TreeLock:
    """One lock per row of the table, held for life: the kernel releases them at any kind of death.

    Several supervisors may share a data directory, in containers for example, as long as no row is run twice.
    """

    def __init__(self, run_dir: Path, rows: Sequence[str]) -> None:
        """Raises `NotAlone` with the holder's pid and command."""
        self._descriptors: list[int] = []
        try:
            for row in rows:
                self._descriptors.append(_locked(run_dir, row))
        except NotAlone:
            self.release()
            raise

    def release(self) -> None:
        while self._descriptors:
            os.close(self._descriptors.pop())


def _locked(run_dir: Path, row: str) -> int:
    descriptor = os.open(
        run_dir / f"supervisor-{row}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
    )
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = _read(descriptor)
        os.close(descriptor)
        raise NotAlone(_held(run_dir.parent, row, holder)) from error
    record = json.dumps(
        {"pid": os.getpid(), "host": os.uname().nodename, "command": " ".join(sys.orig_argv)}
    ).encode()
    # First the new bytes, then the end: a full disk must not leave the file empty.
    os.pwrite(descriptor, record, 0)
    os.ftruncate(descriptor, len(record))
    return descriptor


def _held(data_dir: Path, row: str, holder: Mapping[str, object]) -> str:
    host = holder.get("host")
    # In another container the number means nothing here; the name of the host is the container's id.
    where = f" on host {host}" if host not in (None, os.uname().nodename) else ""
    return (
        f"memoryd already runs on {data_dir} (its {row}): process {holder.get('pid', 'unknown')}{where}, "
        f"started as: {holder.get('command', 'unknown')}. {_advice(holder, where)}"
    )


def _advice(holder: Mapping[str, object], where: str) -> str:
    if where or not isinstance(holder.get("pid"), int):
        return "Stop it there first, or give this one another --data-dir"
    return f"To stop it: Ctrl-C where it runs, or kill {holder['pid']}; it drains and ends. Or give this one another --data-dir"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A child in the roster; pid and start together name a process for ever (until a reboot)."""

    name: str
    pid: int
    start: int


class Roster:
    """`run/children.json`: who runs. For the next start, and for people. A supervisor of some rows only has its own
    file, `children-<row>….json`."""

    def __init__(self, run_dir: Path, only: Sequence[str] = ()) -> None:
        self._path = run_dir / f"{'-'.join(('children', *only))}.json"

    def write(self, pids: Sequence[tuple[str, int]]) -> None:
        """Replace it. Never raises: on a full disk the tether still holds."""
        entries = [{"name": name, "pid": pid, "start": started(pid)} for name, pid in pids]
        aside = self._path.with_suffix(".new")
        try:
            aside.write_text(json.dumps({"boot": _boot(), "supervisor": os.getpid(), "children": entries}))
            aside.replace(self._path)
        except OSError:
            logger.exception("the roster could not be written", extra={"action": "roster_failed"})

    def read(self) -> list[Entry]:
        """The children of the last supervisor; none after a reboot."""
        try:
            record = json.loads(self._path.read_bytes())
            if record["boot"] != _boot():
                return []
            return [
                Entry(name=entry["name"], pid=int(entry["pid"]), start=int(entry["start"]))
                for entry in record["children"]
            ]
        except (OSError, ValueError, KeyError, TypeError):
            return []


def end_leftovers(entries: Sequence[Entry], data_dir: Path, clock: Clock) -> list[int]:
    """Kill what still lives of an earlier tree, by process group, and wait until it is gone; the pids.

    A process counts only when it was started for this data directory: numbers are used again.
    """
    found = [pid for entry in entries for pid in _group(entry) if _serves(pid, data_dir)]
    for pid in found:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    end = clock.monotonic() + _GONE_SECONDS
    while any(_lives(pid) for pid in found) and clock.monotonic() < end:
        clock.sleep(0.02)
    if found:
        logger.warning(
            "ended leftovers of an earlier start", extra={"action": "leftovers_ended", "pids": found}
        )
    return found


def started(pid: int) -> int:
    """When a process started, in clock ticks since the boot; 0 when it is gone or the system has no /proc."""
    fields = _stat(pid)
    return int(fields[19]) if fields else 0


def _group(entry: Entry) -> list[int]:
    """The process of an entry and the members of its group that are younger than it."""
    if started(entry.pid) not in (0, entry.start) or not entry.start:
        return []
    pids = [int(path.name) for path in _PROC.iterdir() if path.name.isdigit()]
    return [
        pid
        for pid in pids
        if (fields := _stat(pid)) and int(fields[2]) == entry.pid and int(fields[19]) >= entry.start
    ]


def _stat(pid: int) -> list[str]:
    """The fields of /proc/<pid>/stat behind the command name: state, parent, group, …; start is the twentieth."""
    try:
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _lives(pid: int) -> bool:
    fields = _stat(pid)
    return bool(fields) and fields[0] not in ("Z", "X")


def _serves(pid: int, data_dir: Path) -> bool:
    try:
        environ = (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return False
    return b"MEMORYD_DATA_DIR=" + os.fsencode(data_dir) in environ


def _boot() -> str:
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _read(descriptor: int) -> dict[str, object]:
    try:
        return json.loads(os.pread(descriptor, 65_536, 0))
    except ValueError:
        return {}

"""Signs of life: one small file per process, written by the loop that does the work and judged by the supervisor.

Only the loop that made a step may beat, never a side thread: a beating thread beside a hanging loop is a lie.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from memory_core.clock import Clock

#: Fixed, so that a beat overwrites in place and needs no free disk.
_RECORD_BYTES = 128


@dataclass(frozen=True, kw_only=True)
class Beat:
    """The last sign of life. Times are seconds of the system-wide monotonic clock."""

    pid: int
    at: float
    #: Until then silence is announced: a long step is under way.
    busy_until: float
    #: False while it still prepares itself; others that need it wait for the first True.
    ready: bool = True
    #: `birth_of` the process; None where the system does not tell.
    born: int | None = None

    @property
    def is_of_a_former_life(self) -> bool:
        """Whether another process has its number now. In a container that is made anew the numbers are the same again."""
        now = birth_of(self.pid)
        return self.born is not None and now is not None and now != self.born

    def silent_seconds(self, now: float) -> float:
        """Seconds of unannounced silence, 0 while it is busy."""
        return max(0.0, now - max(self.at, self.busy_until))


class Heartbeat:
    """The writing side; one per process, made after the last fork."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._clock = clock
        self._born = birth_of(os.getpid())
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._descriptor = os.open(path, flags, 0o600)

    def beat(self, busy_for: float = 0.0, *, ready: bool = True) -> None:
        """Say "a step was made", and that the next one may take `busy_for` seconds."""
        now = self._clock.monotonic()
        values = {
            "pid": os.getpid(),
            "at": round(now, 3),
            "busy_until": round(now + busy_for, 3),
            "ready": ready,
            "born": self._born,
        }
        record = json.dumps(values)
        os.pwrite(self._descriptor, record.ljust(_RECORD_BYTES).encode(), 0)

    def close(self) -> None:
        os.close(self._descriptor)


def birth_of(pid: int) -> int | None:
    """When a process began, in ticks since the system's start (field 22 of its `stat`, proc(5)); None where nobody tells."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    # The program's name, in parentheses, may hold spaces and parentheses itself.
    return int(stat.rpartition(b")")[2].split()[19])


def heartbeat_file(run_dir: Path, name: str) -> Path:
    return run_dir / f"{name}.heartbeat"


def hang_file(run_dir: Path, name: str) -> Path:
    """Left by the supervisor when it killed a hanging process: `{"pid", "at_us"}`, the killed pid and the wall clock."""
    return run_dir / f"{name}.hang"


def read(path: Path) -> Beat | None:
    """The last beat, None when there is none (also for a file that is not whole)."""
    try:
        record = json.loads(path.read_bytes()[:_RECORD_BYTES])
        return Beat(
            pid=int(record["pid"]),
            at=float(record["at"]),
            busy_until=float(record["busy_until"]),
            ready=bool(record["ready"]),
            born=record.get("born"),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None

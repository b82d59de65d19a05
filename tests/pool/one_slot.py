"""One slot of a worker, by hand, with real compute children."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memory_core.clock import SystemClock
from memory_core.config import Settings
from tests.pool.small_gate import SmallGate, SmallJob
from tests.stack.conftest import wait_until
from workers.pool.claiming import claim
from workers.pool.gate import PoolGate
from workers.pool.killable import ComputeChild, Nursery
from workers.pool.running import Pace, Report, Run

NURSERY = Nursery()
QUICK = Pace(
    renew_seconds=0.05, renew_again_seconds=0.05, cancel_seconds=0.3, claim_seconds=5.0, finish_seconds=5.0
)
QUIET = Pace(renew_seconds=60.0, finish_seconds=5.0)


class Slot:
    """A worker's slot, by hand."""

    def __init__(self, gate: SmallGate, child: ComputeChild | None = None) -> None:
        self.clock = SystemClock()
        self.gate = PoolGate(gate.url, lambda: "token", self.clock)
        self.child = child or ComputeChild(NURSERY.spawn, self.clock)
        self.stopping = threading.Event()
        self.runs: list[Run] = []

    def take(self, pace: Pace = QUIET) -> Run:
        pause = self._pause
        found, lease = claim(self.gate, ["lint"], worker="w", on_data_host=True, seconds=5.0, pause=pause)
        assert found.job is not None
        run = Run(
            found.job,
            found,
            lease,
            gate=self.gate,
            child=self.child,
            clock=self.clock,
            pace=pace,
            pause=pause,
            data=Settings(data_dir=Path("/nowhere")),
        )
        self.runs.append(run)
        return run

    def work(self, pace: Pace = QUIET) -> Report:
        report = self.take(pace).work()
        self.child.lay_down()
        return report

    def warm(self, gate: SmallGate) -> None:
        """Have the child started, so that a short run cap is not spent on that."""
        gate.add("probe", {})
        self.work()

    def _pause(self, seconds: float) -> bool:
        return not self.stopping.wait(min(seconds, 0.01))


def in_background(work: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(work()), daemon=True)
    thread.start()
    return thread, answers


def noted_pid(notes: Path) -> int:
    def there() -> bool:
        return notes.exists() and "pid " in notes.read_text()

    wait_until(there)
    return int(notes.read_text().rpartition("pid ")[2].split()[0])


def only_ending(job: SmallJob) -> tuple[str, dict[str, Any]]:
    (ending,) = job.endings
    return ending

"""The writer's figures: counted here, written to a small file that the web process exports."""

from __future__ import annotations

import json
import logging
import os
from collections import Counter
from pathlib import Path
from typing import Any

from memory_core.clock import Clock
from workers.writer.report import BatchReport, Fate

#: More than the figures take: the file keeps its size.
_RECORD_BYTES = 2_048

logger = logging.getLogger(__name__)


class Metrics:
    """`run/writer.metrics.json`, JSON with blanks behind it: figures since the start of this process.

    Overwritten in place and not synced, so that it needs no room: on a full disk it is looked at most. A
    reader that finds it half written looks again.

    `fates` counts commands by what became of them; `seconds` and `commit_seconds` are sums over `batches`.
    """

    def __init__(self, path: Path, clock: Clock, *, epoch: int) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._descriptor = os.open(path, flags, 0o600)
        self._clock = clock
        self._fates: Counter[str] = Counter({fate.value: 0 for fate in Fate})
        self._values: dict[str, Any] = {
            "epoch": epoch,
            "started_at": clock.now_us(),
            "batches": 0,
            "careful_batches": 0,
            "commands": 0,
            "seconds": 0.0,
            "commit_seconds": 0.0,
            "last_batch_commands": 0,
            "last_batch_seconds": 0.0,
            "max_batch_seconds": 0.0,
            "last_drain_task_at": None,
            "drain_tasks": 0,
        }
        self.write(state="starting", is_stopped=False)

    def count(self, report: BatchReport) -> None:
        values, size = self._values, len(report.outcomes)
        self._fates.update(report.fates())
        values["batches"] += 1
        values["careful_batches"] += int(report.was_careful)
        values["commands"] += size
        values["seconds"] += report.seconds
        values["commit_seconds"] += report.commit_seconds
        values["last_batch_commands"] = size
        values["last_batch_seconds"] = report.seconds
        values["max_batch_seconds"] = max(values["max_batch_seconds"], report.seconds)

    def drain_task_ran(self) -> None:
        """The second clock: a consumer of doorbells that died is seen by this standing still."""
        self._values["last_drain_task_at"] = self._clock.now_us()
        self._values["drain_tasks"] += 1

    @property
    def commands(self) -> int:
        return self._values["commands"]

    def write(self, **now: Any) -> None:
        """Overwrite the file, with `now` (state, WAL bytes, letters) beside the counters. Never raises."""
        content = {**self._values, "fates": dict(self._fates), "written_at": self._clock.now_us(), **now}
        record = json.dumps(content).ljust(_RECORD_BYTES).encode()
        try:
            os.pwrite(self._descriptor, record, 0)
            os.ftruncate(self._descriptor, len(record))
        except OSError as error:
            logger.debug("the metrics could not be written: %s", error, extra={"action": "metrics_failed"})

"""Real pool workers: processes of their own over a real broker, rung as the product rings."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from memory_core.clock import SystemClock
from memory_core.config import Settings
from tests.pool.conftest import LOADER, ROOT
from tests.stack.conftest import is_alive, wait_until
from workers import heartbeat
from workers.celery_app import make_app, ring

INSTALL = "ab" * 16


class RealWorker:
    """`python -m workers.pool` with a directory of its own; `settings` as the process reads them."""

    def __init__(
        self,
        home: Path,
        broker_url: str,
        gate_url: str,
        *,
        mutants: str = "",
        environ: dict[str, str] | None = None,
        **more: Any,
    ) -> None:
        home.mkdir(parents=True, exist_ok=True)
        token = home / "token"
        token.write_text("a pool token\n")
        values: dict[str, Any] = {
            "data_dir": home / "own",
            "broker_url": broker_url,
            "gate_url": gate_url,
            "install": INSTALL,
            "pool_token_file": str(token),
            "off_data_host": True,
            "worker_name": home.name,
        }
        self.settings = Settings(**values | more)
        for directory in (self.settings.run_dir, self.settings.log_dir, self.settings.tmp_dir):
            directory.mkdir(parents=True, exist_ok=True)
        quick = {"POOL_QUICK": "POOL_LOOK_SECONDS=600", **(environ or {})}
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "workers.pool"],
            env={
                **os.environ,
                **self.settings.environment(),
                **quick,
                "PYTHONPATH": f"{LOADER}:{ROOT}",
                "PYTHONDONTWRITEBYTECODE": "1",
                "MEMORYD_TEST_MUTANT": ",".join(filter(None, ["job_kinds,quick_pool,quick_jobs", mutants])),
            },
            start_new_session=True,
        )

    def wait_ready(self) -> RealWorker:
        def is_ready() -> bool:
            assert self.process.poll() is None, f"the worker ended with {self.process.returncode}"
            beat = self.beat()
            return beat is not None and beat.ready and beat.pid == self.process.pid

        wait_until(is_ready)
        return self

    def beat(self) -> heartbeat.Beat | None:
        return heartbeat.read(heartbeat.heartbeat_file(self.settings.run_dir, "pool"))

    def silent_seconds(self) -> float:
        beat = self.beat()
        return float("inf") if beat is None else beat.silent_seconds(SystemClock().monotonic())

    def logged(self, action: str) -> list[dict[str, Any]]:
        log = self.settings.log_dir / "pool.log"
        lines = log.read_text().splitlines() if log.exists() else []
        return [record for record in map(json.loads, lines) if record.get("action") == action]

    def children(self) -> set[int]:
        """Processes that it started, by what /proc says."""
        return {
            int(entry.name)
            for entry in Path("/proc").iterdir()
            if entry.name.isdigit()
            and _parent(int(entry.name)) == self.process.pid
            and is_alive(int(entry.name))
        }

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.wait()


class Bells:
    """Rings queues as beat does."""

    def __init__(self, broker_url: str) -> None:
        self._app = make_app(Settings(data_dir=Path("/nowhere"), broker_url=broker_url), INSTALL)

    def ring(self, queue: str = "lint") -> None:
        ring(self._app, INSTALL, queue)

    def close(self) -> None:
        self._app.close()


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, IndexError):
        return 0

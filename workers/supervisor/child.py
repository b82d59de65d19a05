"""One row of the table at run time: its process, its signs of life, its deaths."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memory_core import limits
from memory_core.clock import Clock
from workers import heartbeat, tether
from workers.supervisor.deaths import DeathRow
from workers.supervisor.spec import ChildSpec

logger = logging.getLogger(__name__)


class Child:
    """A process of the tree, in a process group of its own, tied to the supervisor's life."""

    def __init__(
        self, spec: ChildSpec, *, clock: Clock, run_dir: Path, environ: Mapping[str, str], cwd: Path
    ) -> None:
        self.spec = spec
        self.process: subprocess.Popen[bytes] | None = None
        self.was_ever_ready = False
        self.start_at: float | None = 0.0
        self.ready_since: float | None = None
        self.last_code: int | None = None
        self._clock = clock
        self._run_dir = run_dir
        self._environ = environ
        self._cwd = cwd
        self._row = DeathRow()
        self._last_sign = 0.0
        self._next_probe = 0.0
        self._has_signed = False

    @property
    def pid(self) -> int | None:
        return self.process.pid if self.process else None

    @property
    def is_ready(self) -> bool:
        return self.process is not None and self.ready_since is not None

    def start(self) -> None:
        """Spawn it. The wrapper must know our pid to see that we did not die meanwhile."""
        self._prepare()
        parent, now = str(os.getpid()), self._clock.monotonic()
        if self.spec.argv[0] == "-m":
            argv = [sys.executable, "-P", "-m", "workers.tether", parent, *self.spec.argv]
        else:
            argv = [sys.executable, "-I", "-S", str(tether.__file__), parent, *self.spec.argv]
        self.process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if self.spec.captured else None,
            stderr=subprocess.STDOUT if self.spec.captured else None,
            env=dict(self._environ),
            cwd=self._cwd,
            start_new_session=True,
        )
        self.start_at = None
        self.ready_since = None
        self._has_signed = False
        self._last_sign = now
        self._next_probe = now
        logger.info("%s started", self.spec.name, extra={"action": "child_started", **self._context()})

    def _prepare(self) -> None:
        if self.spec.before_start is None:
            return
        try:
            self.spec.before_start()
        except OSError as error:
            logger.error(
                "what %s needs to start could not be made: %s",
                self.spec.name,
                error.strerror,
                extra={"action": "child_unprepared", **self._context()},
            )

    def look(self) -> None:
        """Ask for a sign of life, if it is time to."""
        now = self._clock.monotonic()
        if self.process is None or now < self._next_probe:
            return
        # A child that is not ready yet is asked at each turn: the tree comes up as fast as it can.
        self._next_probe = now + (self.spec.probe_seconds if self.is_ready else 0.0)
        sign = self.spec.probe(self.process.pid)
        if sign is None:
            return
        self._has_signed = True
        self._last_sign = max(self._last_sign, sign.at)
        if sign.ready and self.ready_since is None:
            self.ready_since = now
            self.was_ever_ready = True
            logger.info("%s is ready", self.spec.name, extra={"action": "child_ready", **self._context()})

    def excuse(self) -> None:
        """Silence until now has a cause outside of it."""
        self._last_sign = max(self._last_sign, self._clock.monotonic())

    @property
    def hangs(self) -> bool:
        allowed = self.spec.hang_seconds if self._has_signed else limits.START_GRACE_SECONDS
        return self.process is not None and self._clock.monotonic() - self._last_sign > allowed

    def kill_as_hanging(self) -> None:
        """Kill it, and leave a mark with its pid: who starts next may have to count that."""
        logger.error(
            "%s hangs and is killed", self.spec.name, extra={"action": "child_hangs", **self._context()}
        )
        mark = heartbeat.hang_file(self._run_dir, self.spec.name)
        try:
            mark.write_text(json.dumps({"pid": self.pid, "at_us": self._clock.now_us()}))
        except OSError:
            logger.exception("the mark of a hang could not be written", extra={"action": "hang_mark_failed"})
        self.signal_group(signal.SIGKILL)

    def ask_to_end(self) -> None:
        """SIGTERM to the process alone; it ends its own children in its own order."""
        if self.pid is not None:
            _send(os.kill, self.pid, signal.SIGTERM)

    def signal_group(self, number: signal.Signals) -> None:
        if self.pid is not None:
            _send(os.killpg, self.pid, number)

    def has_died(self, *, was_asked: bool = False) -> bool:
        """Whether the process ended; takes what is left of its group with it, and sets the next start."""
        if self.process is None:
            return False
        ended = os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is None:
            return False
        # While it is not yet reaped its number cannot belong to a stranger.
        self.signal_group(signal.SIGKILL)
        code = self.process.wait()
        now = self._clock.monotonic()
        steady = 0.0 if self.ready_since is None else now - self.ready_since
        pause = self._row.died(steady)
        self.start_at = now + pause
        logger.log(
            logging.INFO if was_asked and code == 0 else logging.WARNING,
            "%s ended (%s)",
            self.spec.name,
            _ending(code),
            extra={"action": "child_ended", "code": code, "pause_seconds": pause, **self._context()},
        )
        self.process = None
        self.ready_since = None
        self.last_code = code
        return True

    def _context(self) -> dict[str, Any]:
        return {"child": self.spec.name, "child_pid": self.pid, "deaths_in_a_row": self._row.deaths}


def _send(how: Any, pid: int, number: signal.Signals) -> None:
    try:
        how(pid, number)
    except (ProcessLookupError, PermissionError):  # macOS says the latter of a group of zombies
        pass


def _ending(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"

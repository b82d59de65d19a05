"""A stack to measure: started as `memoryd up` starts it, watched from outside, its rows checked when it is quiet."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from redis import Redis

from memory_core import bootstrap, config, limits
from memory_core.clock import SystemClock
from memory_core.config import Settings
from memory_core.domain.command import Envelope
from memory_core.store.database import open_reader
from scripts.bench_parts import verify
from scripts.bench_parts.figures import Result
from scripts.bench_parts.verify import Sent
from tests.e2e.running import ROOT, Running, wait_until
from tests.ports import free_pair
from workers.broker import broker_url
from workers.queue.admission import CommandQueue
from workers.queue.connect import writer_client
from workers.queue.disk import DiskGauge
from workers.queue.incoming import Incoming
from workers.queue.keys import Keys

_DRAIN_SECONDS = 120.0
_FILL_COMMANDS = 500
_ADMISSION_SECONDS = 60.0


def cpu_seconds(pid: int) -> float:
    """User and system time of a process, 0 for one that is gone."""
    try:
        words = (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


class Stack(Running):
    """One running memoryd with its broker and database within reach, and the book of what it was sent."""

    def __init__(self, home: Path, **more: Any) -> None:
        """`more` as `Running` takes it."""
        super().__init__(home, **more)
        self.sent: list[Sent] = []
        self._guest: subprocess.Popen[bytes] | None = None

    def start(self, *, ready: bool = True) -> Stack:
        super().start(ready=ready)
        bootstrap.load_commands()
        return self

    @property
    def settings(self) -> Settings:
        return config.load(
            {"data_dir": self.data_dir, "port": self.port, "free_disk_min_bytes": limits.MIB}, {}
        )

    @property
    def database(self) -> Path:
        return self.settings.database

    @contextmanager
    def broker(self) -> Generator[tuple[Redis, Keys]]:
        client = writer_client(broker_url(self.settings))
        try:
            yield client, Keys(config.install_id(self.settings))
        finally:
            client.close()

    def waiting(self) -> int:
        """Entries in the writer queue."""
        with self.broker() as (client, keys):
            return int(client.xlen(keys.commands))  # pyright: ignore[reportArgumentType]

    def wait_drained(self, seconds: float = _DRAIN_SECONDS) -> None:
        wait_until(lambda: not self.waiting(), seconds=seconds, saying="the writer queue is empty")

    def append(self, envelopes: Sequence[Envelope]) -> None:
        """Put commands into the writer queue without the gate, as fast as the broker takes them."""
        with self.broker() as (client, keys):
            clock = SystemClock()
            queue = CommandQueue(
                client,
                keys,
                clock,
                DiskGauge(self.settings, clock),
                incoming=Incoming(self.settings.incoming),
            )
            for at in range(0, len(envelopes), _FILL_COMMANDS):
                part = envelopes[at : at + _FILL_COMMANDS]
                deadline = time.monotonic() + _ADMISSION_SECONDS
                while part := part[queue.append(part).accepted :]:
                    assert time.monotonic() < deadline, "the queue takes nothing more"
                    time.sleep(0.05)  # the marks of the backlog: wait as a client would

    def wait_quiet(self, seconds: float = _DRAIN_SECONDS) -> None:
        """Drained, and every promised file is in place."""
        self.wait_drained(seconds)
        wait_until(
            lambda: not self.query("select 1 from file_outbox limit 1"),
            seconds=seconds,
            saying="every file is in place",
        )

    def pid(self, role: str) -> int:
        """The one process of a role (of the web, gunicorn's worker)."""
        return max(self.pids()[role])

    def cpu_seconds(self) -> dict[str, float]:
        """CPU time that each role's processes have used so far; `guest` is the second web process."""
        guests = set(self._guest_pids())
        used: dict[str, float] = {}
        for role, pids in self.pids().items():
            for pid in pids:
                name = "guest" if pid in guests else role
                used[name] = used.get(name, 0.0) + cpu_seconds(pid)
        return used

    @contextmanager
    def held(self, role: str) -> Generator[None]:
        """The role's process is stopped meanwhile; shorter than what counts as a hang."""
        pid = self.pid(role)
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def verify(self, result: Result) -> None:
        """Check every event that this stack was ever sent; it must be drained."""
        self.wait_drained()
        result.complaints += verify.events(self.database, self.sent)
        rows = sum(sent.count - len(sent.others) for sent in self.sent)
        result.verified.append(f"{rows:,} accepted events: each stored once, whole, counted and indexed")

    def query(self, sql: str, *parameters: Any) -> list[Any]:
        connection = open_reader(self.database)
        try:
            return connection.execute(sql, parameters).fetchall()
        finally:
            connection.close()

    @contextmanager
    def second_web(self, application: str) -> Generator[int]:
        """Another web process beside the stack's own, under the same gunicorn configuration; its port."""
        port = free_pair()
        process = subprocess.Popen(
            [sys.executable, "-m", "gunicorn", "--config", "python:web.gunicorn_conf", application],
            env={**self.environ, "MEMORYD_PORT": str(port)},
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=(self.home / "second-web.log").open("ab"),
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._guest = process
        try:
            wait_until(lambda: self._lives(port), seconds=30, saying="the second web process serves")
            yield port
        finally:
            self._guest = None
            process.terminate()
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(5)

    def _guest_pids(self) -> list[int]:
        if self._guest is None:
            return []
        pid = self._guest.pid
        return [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]

    def _lives(self, port: int) -> bool:
        try:
            return self.request("GET", "/livez", port=port + 1)[0] == 200
        except OSError:
            return False

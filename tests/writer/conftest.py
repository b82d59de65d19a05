"""A real writer process over a real broker; each test stops what it started, by pid."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from memory_core.clock import SystemClock
from memory_core.config import Settings
from memory_core.domain.command import Envelope
from memory_core.store.database import Database
from memory_core.store.statement import text_statement
from tests.stack.conftest import settings, start_broker, wait_until  # noqa: F401 - fixtures
from tests.store.databases import ready
from workers import heartbeat
from workers.broker import broker_url
from workers.queue.keys import Keys
from workers.queue.wire import FIELD, pack

ROOT = Path(__file__).parents[2]


class RunningWriter:
    """One writer process, with test commands loaded beside the real ones (`tests.writer.process_main`)."""

    def __init__(self, of: Settings, environ: dict[str, str], *, lives: bool = True) -> None:
        self.settings = of
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.writer.process_main"],
            env={**os.environ, **of.environment(), "PYTHONPATH": str(ROOT), **environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if lives:
            wait_until(self._is_ready, 90)

    def _is_ready(self) -> bool:
        assert self.process.poll() is None, self.process.stdout and self.process.stdout.read()
        beat = heartbeat.read(heartbeat.heartbeat_file(self.settings.run_dir, "writer"))
        return beat is not None and beat.pid == self.process.pid and beat.ready

    def ended(self, seconds: float = 30.0) -> tuple[int, str]:
        """Its exit code and what it said."""
        said, _ = self.process.communicate(timeout=seconds)
        return self.process.returncode, said

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.ended()[0]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    @property
    def keys(self) -> Keys:
        return Keys(self.settings.install_file.read_text().strip())

    def client(self) -> Redis:
        return Redis.from_url(broker_url(self.settings))

    def append(self, *envelopes: Envelope) -> None:
        """Put commands into the stream as the gate does."""
        with self.client() as client:
            for envelope in envelopes:
                client.xadd(self.keys.commands, {FIELD: pack(envelope)})

    def waiting(self) -> int:
        with self.client() as client:
            return client.xlen(self.keys.commands)

    def drained(self, seconds: float = 30.0) -> None:
        wait_until(lambda: self.waiting() == 0, seconds)

    def rows(self, sql: str) -> list[Any]:
        return rows(self.settings, sql)

    def notes(self) -> list[str]:
        found = self.rows(
            "SELECT json_extract(detail, '$.text') AS x FROM audit_log WHERE op = 'note' ORDER BY seq"
        )
        return [row["x"] for row in found]

    def metrics(self) -> dict[str, Any]:
        return json.loads((self.settings.run_dir / "writer.metrics.json").read_text())


def rows(of: Settings, sql: str) -> list[Any]:
    database = Database(of.database)
    try:
        with database.snapshot() as snapshot:
            return snapshot.rows(text_statement(sql))
    finally:
        database.close()


WriterStart = Callable[..., RunningWriter]


@pytest.fixture
def start_writer(settings: Settings) -> Iterator[WriterStart]:  # noqa: F811 - a fixture
    started: list[RunningWriter] = []

    def start(of: Settings = settings, *, lives: bool = True, **environ: str) -> RunningWriter:
        if of is settings:
            ready(of)
        started.append(RunningWriter(of, environ, lives=lives))
        return started[-1]

    yield start
    for writer in started:
        if writer.process.poll() is None:
            writer.kill()
        if writer.process.stdout:
            writer.process.stdout.close()


@pytest.fixture
def clock() -> SystemClock:
    return SystemClock()

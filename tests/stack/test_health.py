"""What a health check of a container says, and that it does not say it for somebody else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from memory_core import limits
from memory_core.clock import FakeClock
from memory_core.config import Settings
from memory_core.errors import Invalid
from tests.stack.conftest import ROOT, BrokerStart
from workers import health
from workers.heartbeat import Heartbeat, heartbeat_file
from workers.supervisor.spec import by_heartbeat


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def test_a_process_that_never_beat_has_not_started(settings: Settings, clock: FakeClock) -> None:
    assert health.trouble(settings, clock, "writer") == "it has not started"


def test_a_heartbeat_says_when_it_is_ready_busy_and_silent(settings: Settings, clock: FakeClock) -> None:
    heart = Heartbeat(heartbeat_file(settings.run_dir, "writer"), clock)
    heart.beat(600.0, ready=False)
    assert health.trouble(settings, clock, "writer") == "it is not ready yet"

    heart.beat(busy_for=100.0)
    clock.advance(100.0 + limits.HANG_SECONDS)
    assert health.trouble(settings, clock, "writer") is None

    clock.advance(1.0)
    assert "no sign of life" in str(health.trouble(settings, clock, "writer"))


def test_the_heartbeat_of_a_process_that_is_gone_does_not_count(settings: Settings, clock: FakeClock) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    record = {"pid": gone.pid, "at": clock.monotonic(), "busy_until": clock.monotonic(), "ready": True}
    heartbeat_file(settings.run_dir, "beat").write_text(json.dumps(record))

    assert health.trouble(settings, clock, "beat") == f"process {gone.pid} is gone"


def test_the_heartbeat_of_a_former_life_does_not_count_for_who_has_its_number_now(
    settings: Settings, clock: FakeClock
) -> None:
    file = heartbeat_file(settings.run_dir, "writer")
    Heartbeat(file, clock).beat()
    assert health.trouble(settings, clock, "writer") is None
    record = json.loads(file.read_text())

    file.write_text(json.dumps(record | {"born": record["born"] - 1}))

    assert health.trouble(settings, clock, "writer") == "it has not started"
    assert by_heartbeat(settings.run_dir, "writer")(record["pid"]) is None


def test_each_row_has_its_own_patience(settings: Settings, clock: FakeClock) -> None:
    for name in ("beat", "pool"):
        Heartbeat(heartbeat_file(settings.run_dir, name), clock).beat()
    clock.advance(limits.HANG_SECONDS + 1.0)

    assert health.trouble(settings, clock, "pool") is None
    assert health.trouble(settings, clock, "beat") is not None


def test_a_name_that_no_row_has_is_refused(settings: Settings, clock: FakeClock) -> None:
    with pytest.raises(Invalid, match="there are: writer, web, pool, beat"):
        health.trouble(settings, clock, "wrietr")


ReadyzStart = Callable[[int, object], Settings]


@pytest.fixture
def readyz(settings: Settings) -> Iterator[ReadyzStart]:
    """Serves one answer on a probe port."""
    servers: list[HTTPServer] = []

    def serve(status: int, body: object) -> Settings:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(status if self.path == "/readyz" else 404)
                self.end_headers()
                self.wfile.write(json.dumps(body).encode())

            def log_message(self, format: str, *args: object) -> None:
                """Quiet."""

        servers.append(HTTPServer(("127.0.0.1", 0), Handler))
        threading.Thread(target=servers[-1].serve_forever, args=(0.02,)).start()
        return Settings(data_dir=settings.data_dir, host="0.0.0.0", probe_port=servers[-1].server_address[1])  # noqa: S104

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


def test_the_gate_is_asked_whether_it_is_ready(readyz: ReadyzStart, clock: FakeClock) -> None:
    assert health.trouble(readyz(200, {"status": "ready"}), clock, "web") is None


def test_the_parts_that_are_not_well_are_named(readyz: ReadyzStart, clock: FakeClock) -> None:
    settings = readyz(
        503, {"checks": {"broker": "ok", "disk": "the disk is nearly full", "writer": "silent"}}
    )

    assert health.trouble(settings, clock, "web") == "HTTP 503: disk: the disk is nearly full; writer: silent"


def test_a_gate_that_does_not_answer_is_not_well(settings: Settings, clock: FakeClock) -> None:
    away = Settings(data_dir=settings.data_dir, probe_port=1)
    assert "no answer from 127.0.0.1:1" in str(health.trouble(away, clock, "web"))


@pytest.mark.stack
def test_the_exit_code_is_that_of_all_and_the_sick_ones_are_named(
    settings: Settings, start_broker: BrokerStart
) -> None:
    def run(*names: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "workers.health", *names],
            env={**os.environ, **settings.environment(), "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    start_broker(settings)

    assert run("broker").returncode == 0
    both = run("broker", "writer")
    assert (both.returncode, both.stdout) == (1, "writer: it has not started\n")
    assert run().returncode == 1

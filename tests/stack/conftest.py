"""A data directory, and a real broker in it; each test stops what it started, by pid."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memory_core.config import Settings
from workers import broker, data_dir


def wait_until(happened: Callable[[], object], seconds: float = 10.0) -> None:
    """Poll; fails the test when it did not happen in time."""
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, f"did not happen within {seconds} s: {happened}"
        time.sleep(0.02)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made = Settings(data_dir=tmp_path / "data")
    data_dir.prepare(made)
    return made


BrokerStart = Callable[[Settings], subprocess.Popen[bytes]]


@pytest.fixture
def start_broker() -> Iterator[BrokerStart]:
    """Starts the embedded broker of a data directory and waits for its PONG."""
    started: list[subprocess.Popen[bytes]] = []

    def start(settings: Settings) -> subprocess.Popen[bytes]:
        endpoint = broker.set_up(settings)
        process = subprocess.Popen(broker.argv(settings), stdout=subprocess.DEVNULL)
        started.append(process)
        wait_until(lambda: broker.answers(endpoint))
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()

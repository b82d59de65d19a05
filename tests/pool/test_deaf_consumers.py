"""Celery consumers that live and hear nothing after the broker's restart: each job ends once all the same.

Nothing of the product is changed here: the network fails, between real processes and a real broker. Nobody looks at a queue by
itself (`POOL_LOOK_SECONDS`), so what is done was heard of by a doorbell.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.pool.relay import Relay
from tests.pool.whole_stack import QUICK, Stack, whole_stack
from tests.stack.conftest import wait_until
from workers import broker

pytestmark = [pytest.mark.stack, pytest.mark.kills]

_ONLY_RUNG = QUICK + ",POOL_LOOK_SECONDS=600,JOB_LEASE_SECONDS=60"


class OneBroker:
    """Brokers of one socket and one directory, one after the other; the stack reaches them through a relay."""

    def __init__(self, home: Path) -> None:
        home.mkdir()
        self._home, self._socket = home, home / "b"
        self._started: list[subprocess.Popen[bytes]] = []
        self._start()
        self.relay = Relay(home / "r", self._socket)
        self.url = f"unix://{home / 'r'}"

    def restart(self) -> None:
        self._started[-1].kill()
        self._started[-1].wait()
        self._start()

    def restart_unheard(self) -> None:
        """The old one is stopped: its connections stay open and are never answered again."""
        os.kill(self._started[-1].pid, signal.SIGSTOP)
        self._socket.unlink()
        self._start()

    def close(self) -> None:
        self.relay.close()
        for process in self._started:
            process.kill()
            process.wait()

    def _start(self) -> None:
        words = ["--port", "0", "--unixsocket", str(self._socket), "--dir", str(self._home)]
        safe = ["--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction"]
        argv = [str(broker.binary()), *words, *safe]
        self._started.append(subprocess.Popen(argv, stdout=subprocess.DEVNULL))
        wait_until(lambda: broker.answers(broker.Endpoint(path=str(self._socket))))


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OneBroker]:
    made = OneBroker(tmp_path_factory.mktemp("b") / "s")
    yield made
    made.close()


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory, brokers: OneBroker) -> Iterator[Stack]:
    """One for both tests."""
    home = tmp_path_factory.mktemp("deaf")
    with whole_stack(
        home, quick=_ONLY_RUNG, environ={"PROBE_RUN_SECONDS": "120"}, broker_url=brokers.url
    ) as made:
        yield made


def _said(stack: Stack, process: str, action: str) -> list[dict[str, Any]]:
    lines = (stack.settings.log_dir / f"{process}.log").read_text().splitlines()
    return [record for record in map(json.loads, lines) if record.get("action") == action]


def test_connections_that_nobody_answers_any_more_are_left_and_each_job_ends_once(
    stack: Stack, brokers: OneBroker
):
    stack.wait_completed(stack.enqueue())

    brokers.restart_unheard()

    subjects = stack.enqueue(count=3)
    stack.wait_completed(subjects)
    assert {stack.column(subject, "claims") for subject in subjects} == {1}


def test_a_consumer_that_hears_nothing_is_noticed_its_process_replaced_and_each_job_ends_once(
    stack: Stack, brokers: OneBroker, tmp_path: Path
):
    go = tmp_path / "go"
    (in_hand,) = stack.enqueue("wait for a file", str(go), kind="probe_forget")
    stack.wait_running(in_hand)
    before = stack.tree.pids
    hung = {name: before[name] for name in ("pool", "writer")}

    brokers.relay.deafen(*hung.values())
    brokers.restart()
    subjects = stack.enqueue(count=3)
    wait_until(lambda: brokers.relay.swallowed == set(hung.values()))

    # Both notice it themselves; the worker first finishes what it has in hand.
    wait_until(lambda: _said(stack, "pool", "consumer_hangs"))
    assert stack.pool == hung["pool"]
    assert stack.states(subjects) == ["pending"] * 3
    go.touch()
    wait_until(lambda: all(stack.tree.pids.get(name) not in (None, pid) for name, pid in hung.items()))

    stack.wait_completed([in_hand, *subjects])
    assert {stack.column(subject, "claims") for subject in (in_hand, *subjects)} == {1}
    assert _said(stack, "writer", "consumer_hangs")
    ended = {record["child"]: record["child_pid"] for record in stack.tree.logged("child_ended")}
    assert ended == hung
    stack.tree.prompt("after the restart")

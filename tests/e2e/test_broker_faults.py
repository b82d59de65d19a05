"""A broker that is gone, stopped, restarted or wiped with its disk: each answer means what it says, and all heals by itself."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.hooking import HookClient
from tests.e2e.ledger import Ledger
from tests.e2e.oracle import complaints, is_quiet, stored_events
from tests.e2e.running import Running, is_alive, wait_until

pytestmark = pytest.mark.stack


@pytest.fixture(scope="module")
def memoryd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with Running(tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.fixture(scope="module")
def ledger() -> Ledger:
    return Ledger()


def prompt(memoryd: Running, ledger: Ledger, marker: str) -> int:
    body = {"session_id": "broker", "cwd": "/srv/broker", "prompt": f"{marker} was said"}
    answers: list[int] = []

    def ask() -> tuple[int, object]:
        status, answer = memoryd.hook("UserPromptSubmit", query=f"&ingest_key={marker}", **body)
        answers.append(status)
        return status, answer

    ledger.ask(ledger.events, marker, ask)
    return answers[0]


def test_without_a_broker_the_answer_is_503_and_nothing_was_kept(memoryd: Running, ledger: Ledger):
    with memoryd.stopped("supervisor"):
        (broker,) = memoryd.kill("broker")
        wait_until(lambda: not is_alive(broker), saying="the broker is gone")
        gone = prompt(memoryd, ledger, "evt0x0x1")
        readable = memoryd.request("GET", "/api/v1/sessions")[0]
    wait_until(lambda: prompt(memoryd, ledger, "evt0x0x2") == 202, saying="it recovers")

    assert gone == 503
    assert readable == 200
    assert not complaints(memoryd, ledger)


def test_of_a_stopped_broker_the_outcome_is_unknown_and_the_same_id_settles_it(
    memoryd: Running, ledger: Ledger
):
    with memoryd.stopped("broker"):
        stopped = prompt(memoryd, ledger, "evt0x1x1")
        readable = memoryd.request("GET", "/api/v1/sessions")[0]
    wait_until(lambda: prompt(memoryd, ledger, "evt0x1x1") in (200, 202), saying="it recovers")

    assert stopped == 504
    assert readable == 200
    assert not complaints(memoryd, ledger)


def test_doorbells_are_heard_again_after_the_broker_was_restarted(memoryd: Running, ledger: Ledger):
    """A consumer of a task queue is known to stand still after its broker came back, with its process alive."""
    for number in range(3):
        memoryd.kill("broker")
        wait_until(lambda: memoryd.is_ready(), saying="the broker is back")
        before = drain_tasks(memoryd)
        wait_until(
            lambda n=number: prompt(memoryd, ledger, f"evt0x2x{n}") in (200, 202),
            saying="it takes",
        )
        wait_until(lambda seen=before: drain_tasks(memoryd) != seen, saying="a doorbell was heard")

    assert not complaints(memoryd, ledger)


def drain_tasks(memoryd: Running) -> tuple[int, int]:
    """The writer's process and how many doorbells it answered."""
    found = json.loads((memoryd.data_dir / "run" / "writer.metrics.json").read_bytes())
    return memoryd.pids().get("writer", [0])[0], found["drain_tasks"]


def test_what_a_shim_sent_survives_a_broker_that_is_wiped_with_its_disk(
    memoryd: Running, ledger: Ledger, tmp_path: Path
):
    laptop = HookClient(memoryd, tmp_path / "laptop")
    markers = [f"evt0x3x{n}" for n in range(6)]
    with memoryd.stopped("writer"):
        for marker in markers:
            laptop.hook(
                "UserPromptSubmit",
                session_id="wiped",
                cwd="/srv/wiped",
                hook_event_name="UserPromptSubmit",
                prompt=f"{marker} was said",
            )
        wait_until(memoryd.waiting, saying="some were taken: 202")
        with memoryd.stopped("supervisor"):
            (broker,) = memoryd.kill("broker")
            wait_until(lambda: not is_alive(broker), saying="the broker is gone")
            shutil.rmtree(memoryd.data_dir / "broker")
        stored = stored_events(memoryd.data_dir)
    wait_until(lambda: memoryd.is_ready(), saying="a new broker serves")
    wait_until(lambda: not laptop.spool.names(), saying="the drain has delivered everything")
    wait_until(lambda: is_quiet(memoryd), saying="all is stored")
    found = stored_events(memoryd.data_dir)
    for pid in laptop.pids():
        os.kill(pid, signal.SIGTERM)

    assert not set(markers) & set(stored)
    assert {marker: found.get(marker) for marker in markers} == dict.fromkeys(markers, 1)
    assert not laptop.spool.rejected()

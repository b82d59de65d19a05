"""Durable sessions on a whole memoryd: who races, and what dies at which step."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from tests.durable.working import HERE, said
from tests.e2e.running import Running, wait_until
from tests.faults.preload import SlowDisk, preloaded

pytestmark = [pytest.mark.stack, pytest.mark.kills, pytest.mark.timeout(240)]

Stack = tuple[Running, SlowDisk]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    home = tmp_path_factory.mktemp("durable")
    disk = SlowDisk(home / "slow")
    disk.set(0)
    faults = preloaded(home / "faults", slow_file=str(home / "slow"))
    with Running(home / "home", environ=faults) as memoryd:
        yield memoryd, disk


class Agent:
    """Writes turns and keeps its own record of them; sends the same key again until it is answered."""

    def __init__(self, memoryd: Running, session: str = "") -> None:
        self.memoryd = memoryd
        self.lease = ""
        self.record: list[str] = []
        self.id = session or self.insist("POST", "", {"directory": HERE})["id"]

    def ask(self, method: str, route: str, body: Any, key: str) -> tuple[int, Any]:
        path = "/api/v1/durable-sessions" + (f"/{self.id}{route}" if route else "")
        headers = {"Idempotency-Key": key} | ({"Memoryd-Lease": self.lease} if self.lease else {})
        return self.memoryd.request(method, path, body, headers=headers)

    def insist(self, method: str, route: str, body: Any) -> Any:
        key, end = str(uuid.uuid4()), time.monotonic() + 60
        while True:
            try:
                status, answer = self.ask(method, route, body, key)
            except OSError:
                status, answer = 0, None
            if status in (200, 201):
                return answer
            assert status in (0, 202, 429, 503, 504), (status, answer)
            assert time.monotonic() < end, (status, answer)
            time.sleep(0.1)

    def claim(self) -> None:
        self.lease = ""
        self.lease = self.insist("POST", "/claim", {"directory": HERE})["lease"]

    def append(self, *texts: str) -> Any:
        events = [said(text) for text in texts]
        body = {"directory": HERE, "expected_last_sequence": len(self.record), "events": events}
        answer = self.insist("POST", "/turns", body)
        self.record += texts
        assert answer["last_sequence"] == len(self.record)
        return answer

    def replayed(self) -> list[str]:
        query = "&".join(f"{name}={HERE[name]}" for name in ("host", "device", "inode"))
        status, raw = self.ask("GET", f"/replay?{query}", None, str(uuid.uuid4()))
        assert status == 200, raw
        lines = [json.loads(line) for line in raw.splitlines()]
        assert "end" in lines[-1]
        return [line["event"]["payload"]["content"][0]["data"] for line in lines if "event" in line]


def slowly(agent: Agent, disk: SlowDisk, *texts: str) -> threading.Thread:
    """The turn is under way: its commit has begun and does not end."""
    disk.set(400)
    thread = threading.Thread(target=agent.append, args=texts)
    thread.start()
    wait_until(disk.is_busy, seconds=10, saying="a commit is under way")
    return thread


@pytest.mark.parametrize("victim", ["writer", "web", "broker"])
def test_a_turn_whose_commit_is_cut_by_a_death_is_written_once_and_whole(stack: Stack, victim: str):
    memoryd, disk = stack
    agent = Agent(memoryd)
    agent.claim()
    agent.append("before")
    thread = slowly(agent, disk, "one", "two", "three")

    memoryd.kill(victim)
    disk.set(0)
    thread.join(90)

    assert not thread.is_alive()
    memoryd.wait_ready(60)
    agent.append("behind")
    assert agent.replayed() == agent.record == ["before", "one", "two", "three", "behind"]


def test_a_long_turn_whose_writer_dies_between_its_slices_is_written_once_and_whole(stack: Stack):
    memoryd, disk = stack
    agent = Agent(memoryd)
    agent.claim()
    texts = [f"{number} {'x' * 2_000}" for number in range(1_500)]
    thread = slowly(agent, disk, *texts)

    memoryd.kill("writer")
    disk.set(0)
    thread.join(120)

    assert not thread.is_alive()
    assert agent.replayed() == agent.record == texts


def test_a_claim_that_dies_unanswered_is_answered_with_its_token_when_sent_again(stack: Stack):
    memoryd, disk = stack
    agent = Agent(memoryd)
    disk.set(400)
    thread = threading.Thread(target=agent.claim)
    thread.start()
    wait_until(disk.is_busy, seconds=10, saying="a commit is under way")

    memoryd.kill("web")
    disk.set(0)
    thread.join(90)

    assert agent.lease
    agent.append("with the lease that was told at last")
    assert agent.replayed() == agent.record


def test_of_many_who_claim_at_once_one_has_the_session(stack: Stack):
    memoryd, _ = stack
    session = Agent(memoryd).id
    racers = [Agent(memoryd, session) for _ in range(8)]
    start = threading.Barrier(len(racers))
    answers: list[tuple[int, Any]] = []

    def race(agent: Agent) -> None:
        start.wait()
        answers.append(agent.ask("POST", "/claim", {"directory": HERE}, str(uuid.uuid4())))

    threads = [threading.Thread(target=race, args=(agent,)) for agent in racers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert sorted(status for status, _ in answers) == [200] + [409] * 7
    assert {answer["code"] for status, answer in answers if status == 409} == {"session_busy"}


def test_of_two_turns_for_the_same_place_one_is_written(stack: Stack):
    memoryd, _ = stack
    agent = Agent(memoryd)
    agent.claim()
    for number in range(10):
        body = {"directory": HERE, "expected_last_sequence": number, "events": [said(f"{number}")]}
        start = threading.Barrier(2)
        statuses: list[int] = []

        def write(body: Any = body, start: Any = start, statuses: list[int] = statuses) -> None:
            start.wait()
            statuses.append(agent.ask("POST", "/turns", body, str(uuid.uuid4()))[0])

        threads = [threading.Thread(target=write) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert sorted(statuses) == [200, 409]

    assert agent.replayed() == [str(number) for number in range(10)]

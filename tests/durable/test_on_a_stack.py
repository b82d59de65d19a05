"""Durable sessions on a whole memoryd: who races, and what dies at which step."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest

from tests.durable.agent import Agent as JournalAgent
from tests.durable.agent import ok, refused
from tests.durable.journals import call
from tests.durable.on_a_stack import StackHouse
from tests.durable.working import HERE, said
from tests.e2e.running import Running, wait_until
from tests.faults.preload import SlowDisk, preloaded

pytestmark = [pytest.mark.stack, pytest.mark.kills]

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
    wait_until(disk.is_busy, saying="a commit is under way")
    return thread


def cut(stack: Stack, act: Callable[[], Any], victim: str = "writer") -> Any:
    """What the act is answered whose first commit is cut by a death."""
    memoryd, disk = stack
    disk.set(400)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(act)
        wait_until(disk.is_busy, saying="a commit is under way")
        memoryd.kill(victim)
        disk.set(0)
        return answer.result(120)


def journaling(memoryd: Running, session: str = "") -> JournalAgent:
    """A client of the journal that holds a session, and has replayed it."""
    agent = JournalAgent(StackHouse(memoryd), session)  # type: ignore[arg-type]
    if ok(agent.claim())["must_replay"]:
        agent.resume()
    return agent


def count(memoryd: Running, sql: str) -> int:
    """Of rows, in the database itself."""
    with closing(sqlite3.connect(f"file:{memoryd.settings.database}?mode=ro", uri=True)) as connection:
        return connection.execute(sql).fetchone()[0]


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
    memoryd.wait_ready()
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
    wait_until(disk.is_busy, saying="a commit is under way")

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
        key = str(uuid.uuid4())
        start.wait()
        # 202: nobody knows yet; the same key is told the same.
        while (answer := agent.ask("POST", "/claim", {"directory": HERE}, key))[0] == 202:
            pass
        answers.append(answer)

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


def test_a_journaled_turn_whose_steps_are_cut_by_deaths_is_written_once(stack: Stack):
    agent, one = journaling(stack[0]), call()
    ok(agent.begin())
    ok(agent.plan(one))

    ok(cut(stack, lambda: agent.start(one)))
    ok(cut(stack, lambda: agent.complete(one)))
    ok(cut(stack, agent.checkpoint))
    ok(agent.end())

    kinds = [event["kind"] for event in agent.events() if event["kind"] != "audit"]
    assert kinds == ["user_message", "tool_call", "tool_result", "assistant_message"]
    told = [event["payload"]["event"]["type"] for event in agent.events() if event["kind"] == "audit"]
    assert told.count("tool_started") == told.count("tool_completed") == told.count("turn_completed") == 1
    assert agent.journal() == {"turn": None, "batch": None}


@pytest.mark.parametrize("victim", ["writer", "web"])
def test_a_recovery_that_is_cut_by_a_death_is_written_once(stack: Stack, victim: str):
    """Between its steps: each call is reconciled by a commit of its own."""
    memoryd, _ = stack
    agent, done, begun, idle = journaling(memoryd), call(), call(), call()
    ok(agent.begin())
    ok(agent.plan(done, begun, idle))
    ok(agent.start(done))
    ok(agent.complete(done))
    ok(agent.start(begun))
    ok(agent.post("release"))
    other = journaling(memoryd, agent.id)

    report = ok(cut(stack, lambda: other.recover(accept=True), victim))

    found = (report["exact_results"], report["uncertain_results"], report["not_executed_results"])
    assert sum(found) == 3
    assert found[0] >= 1, "what has a result keeps it"
    assert [event["kind"] for event in other.events()].count("tool_result") == 3
    assert refused(other.recover(), "invalid", 400)
    other.last_sequence = report["last_sequence"]
    ok(other.append(said("and on")))


def test_a_deletion_whose_writer_dies_between_its_slices_leaves_no_row(stack: Stack):
    memoryd, _ = stack
    agent = journaling(memoryd)
    for number in range(3):
        ok(agent.append(*[said(f"{number} {at}") for at in range(900)]))
    ok(agent.post("release"))
    house = StackHouse(memoryd)

    answer = cut(stack, lambda: house.delete(agent.root))

    assert (ok(answer)["deleted"], ok(answer)["left"]) == (True, False)
    assert house.get(agent.root).status_code == 404
    mine = f"x'{agent.id.replace('-', '')}'"
    for table in ("durable_sessions", "session_events"):
        assert count(memoryd, f"SELECT count(*) FROM {table} WHERE session_id = {mine}") == 0


def test_a_session_whose_end_is_cut_by_a_death_is_distilled_once(stack: Stack):
    memoryd, _ = stack
    agent = journaling(memoryd)
    ok(agent.append(said("Remember that releases are cut on Tuesdays.")))

    closed = ok(cut(stack, lambda: agent.post("close", {"directory": HERE})))

    house = StackHouse(memoryd)
    wait_until(
        lambda: house.get(f"/api/v1/jobs/{closed['job']}").body["state"] == "completed",
        seconds=60,
        saying="the distillation is done",
    )
    mine = f"x'{agent.id.replace('-', '')}'"
    assert count(memoryd, f"SELECT count(*) FROM distillations WHERE session_id = {mine}") == 1
    sources = f"SELECT count(*) FROM knowledge_versions WHERE provenance_session_id = {mine}"
    assert count(memoryd, sources) == 1

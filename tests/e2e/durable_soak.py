"""Agents in durable sessions that work while their programs and memoryd's processes are killed, and what must hold at the end."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from client.durable.history import messages_of
from client.durable.routes import HttpSession
from client.durable.session import DurableAgentSession
from client.durable.transport import Transport
from memory_core.domain.agent_message import payload
from memory_core.domain.directory import Directory
from memory_core.domain.tool_journal import NOT_EXECUTED_TEXT
from tests.client.durable.program import agent_of, settings_of
from tests.client.durable.soaking import read_record
from tests.e2e.running import ROOT, Running, wait_until

#: Leases, renewals and pauses in seconds instead of minutes.
QUICK_SESSIONS = "SESSION_LEASE_SECONDS=4"
QUICK_JOBS = (
    "JOB_LEASE_SECONDS=5,JOB_RENEW_SECONDS=1,JOB_BACKOFF_SECONDS=1,JOB_BACKOFF_MAX_SECONDS=3,JOB_CONTENDED_SECONDS=1,"
    "JOB_START_GRACE_SECONDS=3,POOL_LOOK_SECONDS=1"
)
ENVIRON = {"SESSIONS_QUICK": QUICK_SESSIONS, "POOL_QUICK": QUICK_JOBS, "MEMORYD_HOST_ID": "soak-host"}
CONDITIONS = ("quick_sessions", "quick_jobs", "quick_pool")
ROLES = ("writer", "web", "pool", "broker")
KINDS = ("compaction", "distillation")
FINAL = ("completed", "failed", "cancelled")


@dataclass
class SoakingAgent:
    """One session and the program that works on it; started again whenever it was killed."""

    memoryd: Running
    home: Path
    name: str
    turns: int
    session: str = ""
    starts: int = 0
    process: subprocess.Popen[bytes] | None = None
    #: Another code than 0 or that of a kill.
    codes: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.directory.mkdir(parents=True)
        self.settings = settings_of(self.memoryd.url, self.memoryd.token)
        begun = DurableAgentSession.start(
            agent_of(self.diary), self.directory, settings=self.settings, project=f"soak-{self.name}"
        )
        self.session = begun.session_id
        begun.release()

    @property
    def directory(self) -> Path:
        return self.home / self.name / "work"

    @property
    def diary(self) -> Path:
        return self.home / self.name / "diary"

    @property
    def record(self) -> Path:
        return self.home / self.name / "record"

    def start(self) -> None:
        self.starts += 1
        orders = {
            "url": self.memoryd.url,
            "token": self.memoryd.token,
            "session": self.session,
            "directory": str(self.directory),
            "diary": str(self.diary),
            "record": str(self.record),
            "name": self.name,
            "turns": self.turns,
            "compact_every": 5,
            "close_every": 12,
            "renew_seconds": 1.0,
        }
        with (self.home / f"{self.name}.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.client.durable.soaking"],
                env={
                    "PATH": self.memoryd.environ["PATH"],
                    "HOME": str(self.home),
                    "PYTHONPATH": str(ROOT),
                    "PYTHONDONTWRITEBYTECODE": "1",
                    "MEMORYD_HOST_ID": ENVIRON["MEMORYD_HOST_ID"],
                },
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
            )
        assert self.process.stdin is not None
        with self.process.stdin as given, suppress(BrokenPipeError):
            given.write(json.dumps(orders).encode() + b"\n")

    def kill(self) -> bool:
        """Whether there was something to kill."""
        if self.process is None or self.process.poll() is not None:
            return False
        self.process.kill()
        self.process.wait()
        return True

    def is_done(self) -> bool:
        """Whether its program has done all its turns; starts it again where it was killed."""
        if self.process is not None and self.process.poll() is None:
            return False
        if self.process is not None and self.process.returncode == 0:
            return True
        if self.process is not None and self.process.returncode != -9:
            self.codes.append(self.process.returncode)
        if len(self.codes) < 3:
            self.start()
            return False
        return True

    def turns_done(self) -> int:
        return self.record.read_text().count('"done"') if self.record.exists() else 0

    def log(self) -> str:
        return (self.home / f"{self.name}.log").read_text(errors="replace")[-3000:]


@dataclass
class Soak:
    """`run` until all turns are done; `complaints` afterwards."""

    memoryd: Running
    home: Path
    seed: int
    turns: int
    #: Seconds between two kills.
    pause: tuple[float, float] = (2.0, 5.0)
    agents: int = 2
    seconds_max: float = 240.0
    #: Kills there are at least: one comes early where the turns get on faster than the kills.
    kills_min: int = 0
    say: Callable[[str], None] = print
    kills: Counter[str] = field(default_factory=Counter)
    #: Kind and state of jobs at the end → how many.
    jobs: dict[str, int] = field(default_factory=dict)

    def run(self) -> list[str]:
        chance = random.Random(self.seed)
        names = [chr(ord("a") + number) for number in range(self.agents)]
        crew = [SoakingAgent(self.memoryd, self.home, name, self.turns) for name in names]
        began = time.monotonic()
        for agent in crew:
            agent.start()
        try:
            self._strike_until_done(crew, chance, began)
        finally:
            for agent in crew:
                agent.kill()
        self.say(
            f"{self.turns * len(crew)} turns in {time.monotonic() - began:.0f} s; kills: {dict(self.kills)}"
        )
        self.memoryd.wait_ready()
        found = [said for agent in crew for said in self._of_agent(agent)]
        return found + self._of_jobs()

    def _strike_until_done(self, crew: list[SoakingAgent], chance: random.Random, began: float) -> None:
        targets: list[str] = []
        strike_at = time.monotonic() + chance.uniform(*self.pause)
        # Each is asked, whatever the others say: asking starts those again that were killed.
        while sum(agent.is_done() for agent in crew) < len(crew):
            assert time.monotonic() - began < self.seconds_max, (
                f"not done after {self.seconds_max} s: "
                + "; ".join(
                    f"{agent.name}: {len(read_record(agent.record))} lines, {agent.log()[-500:]}"
                    for agent in crew
                )
            )
            if time.monotonic() >= strike_at or self._kills_lag(crew):
                # Everybody has a turn before one has a second.
                targets = targets or chance.sample(
                    [*ROLES, *(agent.name for agent in crew)], len(ROLES) + len(crew)
                )
                self._strike(targets.pop(), crew)
                strike_at = time.monotonic() + chance.uniform(*self.pause)
            time.sleep(0.05)

    def _kills_lag(self, crew: list[SoakingAgent]) -> bool:
        done = sum(agent.turns_done() for agent in crew)
        return sum(self.kills.values()) < self.kills_min * done / (self.turns * len(crew))

    def _strike(self, target: str, crew: list[SoakingAgent]) -> None:
        agent = next((one for one in crew if one.name == target), None)
        if agent.kill() if agent is not None else self.memoryd.kill(target):
            self.kills["agent" if agent is not None else target] += 1

    # --- what must hold ---

    def _of_agent(self, agent: SoakingAgent) -> list[str]:
        record = read_record(agent.record)
        if not record or "history" not in record[-1]:
            return [f"{agent.name}: its program never came to its end: {agent.codes} {agent.log()}"]
        place = Directory(host="-", device="0", inode="0", path="/")
        transport = Transport(agent.settings)
        looking = HttpSession(transport, agent.session, place)
        head = transport.read(f"/durable-sessions/{agent.session}")["last_sequence"]
        events = list(looking.events_after(0, head))
        return [
            f"{agent.name}: {said}"
            for said in (
                *([f"ended with {agent.codes}: {agent.log()}"] if agent.codes else []),
                *_of_record(record, agent.turns),
                *_of_transcript(record, events),
                *_of_diary(record, events, agent.diary.read_text().splitlines()),
                *self._of_replay(agent, record, events),
            )
        ]

    def _of_replay(self, agent: SoakingAgent, record: list[dict[str, Any]], events: Any) -> list[str]:
        """Who resumes finds the history that the program had at its end; a summary may stand for its beginning by now."""
        told = record[-1]["history"]
        session = DurableAgentSession.resume(
            agent_of(agent.diary), agent.session, agent.directory, settings=agent.settings
        )
        found = [payload(message) for message in session.history]
        session.release()
        if found == told:
            return []
        whole = [payload(message) for message in messages_of(events)]
        tail = found[1:]
        is_summed_up = found and "untrusted_compaction_summary" in found[0]["content"][0]["data"]
        if is_summed_up and tail == [one for one in whole if not _is_summary(one)][-len(tail) :]:
            return []
        return [f"the replay has {len(found)} messages and the program had {len(told)}, and they differ"]

    def _of_jobs(self) -> list[str]:
        def listed() -> list[dict[str, Any]]:
            status, jobs = self.memoryd.request("GET", "/api/v1/jobs?limit=200")
            assert status == 200, jobs
            return [job for job in jobs if job["kind"] in KINDS]

        def unfinished() -> list[dict[str, Any]]:
            return [job for job in listed() if job["state"] not in FINAL]

        with suppress(AssertionError):
            wait_until(lambda: not unfinished(), saying="every job has ended")
        left = [
            f"job {job['id']} ({job['kind']}) is {job['state']}: {job['last_error']}" for job in unfinished()
        ]
        self.jobs = dict(Counter(f"{job['kind']} {job['state']}" for job in listed()))
        self.say(f"jobs: {self.jobs}")
        return left + [f"no {kind} was completed" for kind in KINDS if f"{kind} completed" not in self.jobs]


def _is_summary(message: dict[str, Any]) -> bool:
    return bool(message["content"]) and "untrusted_compaction_summary" in str(message["content"][0]["data"])


def _of_record(record: list[dict[str, Any]], turns: int) -> list[str]:
    done = [line["turn"] for line in record if "done" in line]
    return [] if done == list(range(turns)) else [f"of {turns} turns it did {done}"]


def _of_transcript(record: list[dict[str, Any]], events: Any) -> list[str]:
    """Each turn that the program saw committed is in the transcript once, in its order; nothing else has an answer."""
    answers = [
        "".join(part["data"] for part in event.payload["content"])
        for event in events
        if event.kind == "assistant_message"
    ]
    expected = [f"done: wrote {line['done']}" for line in record if "done" in line]
    found = (
        [] if answers == expected else [f"answers in the transcript {answers} and in the record {expected}"]
    )
    asked = [_said(event) for event in events if event.kind == "user_message" or _is_failed_input(event)]
    begun = [line["begun"] for line in record if "begun" in line]
    if len(set(asked)) != len(asked):
        found.append("something was asked twice in the transcript")
    if [said for said in begun if said in set(asked)] != asked:
        found.append("what was asked stands in another order in the transcript than in the record")
    return found


def _is_failed_input(event: Any) -> bool:
    return event.kind == "error" and event.payload["record"] == "failed_turn"


def _said(event: Any) -> str:
    message = event.payload["input"] if event.kind == "error" else event.payload
    return "".join(part["data"] for part in message["content"])


def _of_diary(record: list[dict[str, Any]], events: Any, lines: list[str]) -> list[str]:
    """No tool ran twice; it ran for each committed turn, and for no call of which the transcript says that it was not executed."""
    counted = Counter(lines)
    twice = [line for line, count in counted.items() if count > 1]
    missing = [line["done"] for line in record if "done" in line and not counted[line["done"]]]
    calls = {
        call["id"]: call["arguments"]["text"]
        for event in events
        if event.kind == "tool_call"
        for call in event.payload["tool_calls"]
    }
    denied = [
        calls[event.payload["tool_call_id"]]
        for event in events
        if event.kind == "tool_result" and event.payload["content"][0]["data"] == NOT_EXECUTED_TEXT
    ]
    secretly = [said for said in denied if counted[said]]
    found = {
        "ran twice": twice,
        "did not run": missing,
        "ran, and the transcript says that it did not": secretly,
    }
    return [f"{what}: {which}" for what, which in found.items() if which]

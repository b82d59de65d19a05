"""Kills processes of a loaded stack again and again, and says what was in flight at each."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from tests.e2e.ledger import Ledger, Load, settle
from tests.e2e.oracle import complaints, file_complaints
from tests.e2e.running import Running, is_alive, send, wait_until

ROLES = ("writer", "broker", "web", "supervisor", "all")
#: How long the stack may take to serve again; the supervisor's pauses grow with deaths in a row.
RECOVERY_SECONDS_MAX = 120.0
_ROUND = 4


@dataclass(frozen=True, kw_only=True)
class Kill:
    roles: tuple[str, ...]
    pids: tuple[int, ...]
    #: Requests without an answer at the moment of the kill.
    in_flight: int
    recovery_seconds: float

    def __str__(self) -> str:
        return (
            f"{'+'.join(self.roles)} ({len(self.pids)} processes) with {self.in_flight} in flight, "
            f"serving again after {self.recovery_seconds:.1f} s"
        )


@dataclass
class Storm:
    """`count` counted kills of random `roles`, in rounds; after each round the oracle looks."""

    memoryd: Running
    seed: int
    roles: tuple[str, ...] = ROLES
    say: Callable[[str], None] = print
    kills: list[Kill] = field(default_factory=list)
    uncounted: int = 0
    ledger: Ledger = field(default_factory=Ledger)

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)
        # Every role has its turn before one has a second, so that a short storm meets all of them.
        self._turns: list[str] = []

    def run(self, count: int) -> list[str]:
        """The complaints of the first round that has any."""
        self.say(f"seed {self.seed}: {count} kills of {', '.join(self.roles)}")
        number = 0
        while len(self.kills) < count:
            found = self._round(f"{self.seed}{number:02d}", min(_ROUND, count - len(self.kills)))
            if found:
                return found
            number += 1
        self.say(self.summary())
        return []

    def summary(self) -> str:
        ledger, counts = self.ledger, self.ledger.statuses
        return (
            f"{len(self.kills)} kills counted, {self.uncounted} not (nothing was in flight); "
            f"{len(ledger.events)} events, {len(ledger.accepted(ledger.events))} of them accepted, "
            f"{len(ledger.accepted(ledger.pages))} of {len(ledger.pages)} page writes; answers: "
            f"{counts.get(429, 0)} x 429, {counts.get(503, 0)} x 503, {counts.get(504, 0)} x 504, {counts.get(0, 0)} x none; "
            f"recovery at most {max(kill.recovery_seconds for kill in self.kills):.1f} s"
        )

    def _round(self, name: str, count: int) -> list[str]:
        found: list[str] = []
        with Load(self.memoryd, seed=int(name), ledger=self.ledger) as load:
            wait_until(lambda: self.ledger.in_flight, saying="the load has begun")
            goal = len(self.kills) + count
            while len(self.kills) < goal and not found:
                settle(self._chance.uniform(0.05, 1.5))
                found = self._strike()
        if found:
            return found
        found = complaints(self.memoryd, load.ledger)
        self.say(f"  round {name}: {len(found)} complaints")
        return found

    def _strike(self) -> list[str]:
        roles = [self._next_role()]
        if self._chance.random() < 0.2:
            roles.append(self._next_role())
        victims = self._victims(roles)
        in_flight = self._wait_for_flight()
        began = time.monotonic()
        if "supervisor" in roles or "all" in roles:
            found = self._fell(victims)
        elif "writer" in roles:
            found = self._stop_writer(victims)
        else:
            send(victims, signal.SIGKILL)
            found = []
        took = self._recovery(began)
        kill = Kill(roles=tuple(roles), pids=tuple(victims), in_flight=in_flight, recovery_seconds=took)
        if in_flight:
            self.kills.append(kill)
            self.say(f"  {len(self.kills):3} {kill}")
        else:
            self.uncounted += 1
        if took > RECOVERY_SECONDS_MAX:
            found.append(f"it took {took:.0f} s to serve again")
        return found

    def _next_role(self) -> str:
        if not self._turns:
            self._turns = self._chance.sample(self.roles, len(self.roles))
        return self._turns.pop()

    def _victims(self, roles: list[str]) -> list[int]:
        pids = self.memoryd.pids()
        if "all" in roles:
            return [pid for group in pids.values() for pid in group]
        found: list[int] = []
        for role in roles:
            group = pids.get(role, [])
            # Of several processes (the web's master and its worker) sometimes one, sometimes all.
            found += group if self._chance.random() < 0.5 else group[-1:]
        return found

    def _stop_writer(self, victims: list[int]) -> list[str]:
        """With the supervisor stopped nobody starts the next writer before the files were looked at."""
        with self.memoryd.stopped("supervisor"):
            return self._kill_and_look(victims)

    def _fell(self, victims: list[int]) -> list[str]:
        """The whole tree goes with its supervisor; then it is started anew."""
        everyone = [pid for group in self.memoryd.pids().values() for pid in group]
        found = self._kill_and_look(victims, gone=everyone)
        assert self.memoryd.process is not None
        self.memoryd.process.wait(60)
        self.memoryd.start(ready=False)
        return found

    def _kill_and_look(self, victims: list[int], gone: list[int] | None = None) -> list[str]:
        send(victims, signal.SIGKILL)
        try:
            wait_until(
                lambda: not any(is_alive(pid) for pid in gone or victims),
                saying="all of them ended",
            )
        except AssertionError:
            return [f"process {pid} outlives its parent" for pid in gone or victims if is_alive(pid)]
        return [f"in mid-state: {said}" for said in file_complaints(self.memoryd.data_dir)]

    def _recovery(self, began: float) -> float:
        """Seconds until an event is committed again."""
        with suppress(AssertionError):
            wait_until(self._commits, seconds=RECOVERY_SECONDS_MAX, saying="an event is committed")
        return time.monotonic() - began

    def _commits(self) -> bool:
        body = {"session_id": "probe", "cwd": "/srv/probe", "prompt": "is anybody there"}
        try:
            status, answer = self.memoryd.hook("UserPromptSubmit", query="&wait=commit", **body)
        except OSError:
            return False
        return status == 200 and answer.get("status") != "pending"

    def _wait_for_flight(self) -> int:
        """Wait for a moment with requests under way, and some milliseconds more: how many have no answer now.

        Every second time for a page write. 0 when nothing was met.
        """
        wants_page = len(self.kills) % 2 == 0
        end = time.monotonic() + 2.0
        while time.monotonic() < end:
            if self.ledger.pages_in_flight if wants_page else self.ledger.in_flight:
                settle(self._chance.uniform(0.0, 0.04))
                if self.ledger.in_flight:
                    break
            time.sleep(0.0005)
        return self.ledger.in_flight

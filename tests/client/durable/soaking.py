"""An agent that works for long and is killed again and again: `python -m tests.client.durable.soaking`.

It goes on by its record, a file of JSON lines that it syncs: turns that it began, turns that it saw committed, and at last
the whole history as it has it. Orders come as one JSON object on standard input.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from client.durable import (
    AllowOnce,
    CoreError,
    DurableAgentSession,
    SessionBusy,
    UncertainToolInvocations,
    recover,
)
from client.durable.agent import Around
from client.durable.redaction import redact_with
from memory_core.domain.agent_message import payload
from memory_core.errors import OutcomeUnknown, StaleSessionLease, Unavailable
from tests.client.durable.program import KEY, agent_of, settings_of

#: A context window so small that a handful of turns fills it.
WINDOW = 12_000


@dataclass(frozen=True, kw_only=True)
class Orders:
    url: str
    token: str
    session: str
    directory: str
    diary: str
    record: str
    name: str
    turns: int
    compact_every: int
    close_every: int
    renew_seconds: float


class Record:
    """What the program knows of its own work."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.lines: list[dict[str, Any]] = read_record(path)

    def write(self, **line: Any) -> None:
        self.lines.append(line)
        with self._path.open("a") as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def begun(self, turn: int) -> list[str]:
        """What was said in the tries of that turn."""
        return [line["begun"] for line in self.lines if "begun" in line and line["turn"] == turn]

    @property
    def done(self) -> int:
        """Turns that are committed, as far as the program saw."""
        return sum("done" in line for line in self.lines)


def read_record(path: Path) -> list[dict[str, Any]]:
    """Whole lines; a program that was killed may have left half of one."""
    if not path.exists():
        return []
    text = path.read_text()
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        path.write_text(whole)
    return [json.loads(line) for line in whole.splitlines()]


class Soak:
    def __init__(self, orders: Orders) -> None:
        self._orders = orders
        self._record = Record(Path(orders.record))
        self._settings = settings_of(orders.url, orders.token)
        self._session: DurableAgentSession | None = None

    def run(self) -> None:
        while self._record.done < self._orders.turns:
            self._turn(self._record.done)
            if self._record.done % self._orders.compact_every == 0:
                self._compact()
            if self._record.done % self._orders.close_every == 0:
                self._let_go(lambda session: session.close())
        session = self._opened()
        self._record.write(
            history=[payload(message) for message in session.history], last=session.last_sequence
        )
        self._let_go(lambda session: session.close())

    def _turn(self, turn: int) -> None:
        session = self._opened()
        tries = self._record.begun(turn)
        # What was begun and not seen to end may have been committed all the same.
        answers = [message.text for message in session.history if message.role.value == "assistant"]
        found = next((said for said in tries if f"done: wrote {said}" in answers), None)
        if found is not None:
            self._record.write(done=found, turn=turn, last=None)
            return
        said = f"{self._orders.name}-{turn}.{len(tries)}"
        self._record.write(begun=said, turn=turn)
        try:
            result = session.run(said, approve=lambda _: AllowOnce())
        except CoreError as error:
            self._record.write(failed=said, error=type(error).__name__)
            self._forget()
            return
        assert result.text == f"done: wrote {said}", result.text
        self._record.write(done=said, turn=turn, last=result.last_sequence)

    def _compact(self) -> None:
        """Ask for a compaction, and give it room: it runs while nobody holds the session."""
        try:
            answer = self._opened().compact(WINDOW)
        except CoreError:
            self._forget()
            return
        self._record.write(compacted=answer["plan"] is not None or answer["job"] is not None)
        self._let_go(lambda session: session.release())
        if answer["job"] is not None:
            time.sleep(1.5)

    # --- the session ---

    def _opened(self) -> DurableAgentSession:
        """The session, as soon as it can be had."""
        while self._session is None or not self._session.is_usable:
            try:
                self._session = DurableAgentSession.resume(
                    agent_of(Path(self._orders.diary)),
                    self._orders.session,
                    self._orders.directory,
                    settings=self._settings,
                    around=Around(redact=redact_with(KEY), renew_seconds=self._orders.renew_seconds),
                )
            except UncertainToolInvocations as error:
                self._record.write(uncertain=len(error.calls))
                self._recover()
            except (SessionBusy, StaleSessionLease, Unavailable, OutcomeUnknown) as error:
                # Held by its program before, not let go in time while memoryd was away, or memoryd is away.
                self._record.write(waits=type(error).__name__)
                time.sleep(0.5)
        return self._session

    def _recover(self) -> None:
        try:
            recover(
                self._orders.session,
                self._orders.directory,
                accept_unknown_effects=True,
                settings=self._settings,
            )
        except CoreError as error:
            self._record.write(waits=type(error).__name__)
            time.sleep(0.5)

    def _forget(self) -> None:
        if self._session is not None:
            self._session.release()
            self._session = None

    def _let_go(self, how: Callable[[DurableAgentSession], object]) -> None:
        try:
            how(self._opened())
        except CoreError as error:
            self._record.write(kept=type(error).__name__)
        self._session = None


def main() -> None:
    Soak(Orders(**json.loads(sys.stdin.readline()))).run()


if __name__ == "__main__":
    main()

"""Durable sessions by their commands, with a clock that the test moves."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from memory_core.commands.durable_sessions import (
    ClaimSession,
    CloseSession,
    ReleaseLease,
    RenewLease,
    SayReplayed,
    SetTitle,
    StartSession,
)
from memory_core.commands.durable_turns import AppendTurn, TurnEvent
from memory_core.domain.command import Refusal
from memory_core.domain.directory import Directory
from memory_core.domain.session_event import SessionEvent
from memory_core.ids import id_bytes
from memory_core.store import durable_sessions, session_events
from tests.factories import Store

PLACE = Directory(host="laptop", device="66306", inode="12345", path="/srv/repo")


def started(store: Store, **more: Any) -> bytes:
    """The id of a new session."""
    answer = store.apply(StartSession(directory=PLACE, **more), token_scope="write")
    assert not isinstance(answer, Refusal), answer
    return id_bytes(answer["id"])


def say(text: str) -> TurnEvent:
    return TurnEvent(kind="user_message", payload={"text": text})


@dataclass
class Holder:
    """Somebody who works on a session, or would like to."""

    store: Store
    session: bytes
    name: str = "one"
    directory: Directory = PLACE
    last_sequence: int = 0
    claims: int = field(default=0)

    @property
    def lease(self) -> bytes:
        """Another one for each claim."""
        return hashlib.sha256(f"{self.name} {self.claims}".encode()).digest()

    @property
    def _mine(self) -> dict[str, Any]:
        return {"session": self.session, "lease_hash": self.lease, "directory": self.directory}

    def _apply(self, command: Any) -> Any:
        return self.store.apply(command, token_scope="write")

    def claim(self) -> Any:
        self.claims += 1
        answer = self._apply(ClaimSession(**self._mine))
        if isinstance(answer, Refusal):
            self.claims -= 1
        else:
            self.last_sequence = answer["last_sequence"]
        return answer

    def renew(self) -> Any:
        return self._apply(RenewLease(**self._mine))

    def release(self) -> Any:
        return self._apply(ReleaseLease(session=self.session, lease_hash=self.lease))

    def append(self, *events: TurnEvent) -> Any:
        answer = self._apply(
            AppendTurn(**self._mine, expected_last_sequence=self.last_sequence, events=events or (say("x"),))
        )
        if not isinstance(answer, Refusal):
            self.last_sequence = answer["last_sequence"]
        return answer

    def replay(self) -> Any:
        """Read the head and say that all before it was read."""
        with self.store.transaction() as tx:
            state = durable_sessions.one(tx, self.session)
        assert state is not None
        answer = self._apply(
            SayReplayed(**self._mine, last_sequence=state.last_sequence, digest=state.digest)
        )
        if not isinstance(answer, Refusal):
            self.last_sequence = state.last_sequence
        return answer

    def title(self, text: str, *, with_lease: bool = True) -> Any:
        mine = {"lease_hash": self.lease, "directory": self.directory} if with_lease else {}
        return self._apply(SetTitle(session=self.session, title=text, **mine))

    def close(self) -> Any:
        return self._apply(CloseSession(**self._mine))


def code(answer: Any) -> str:
    """Of a refusal; empty for what took effect."""
    return answer.code if isinstance(answer, Refusal) else ""


def stored(store: Store, session: bytes) -> Sequence[SessionEvent]:
    with store.transaction() as tx:
        return session_events.between(tx, session, after=0, through=2**40, limit=200_000, max_bytes=2**40)

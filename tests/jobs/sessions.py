"""Durable sessions for tests of jobs, by the commands: begun, claimed, written, given back."""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass, field
from typing import Any

from memory_core.commands.compaction import QueueCompaction
from memory_core.commands.durable_sessions import (
    ClaimSession,
    CloseSession,
    ReleaseLease,
    SayReplayed,
    StartSession,
)
from memory_core.commands.durable_staging import StageTurn
from memory_core.commands.durable_turns import AppendTurn, TurnEvent
from memory_core.domain.directory import Directory
from memory_core.domain.durable_session import DurableSession
from memory_core.ids import id_bytes
from memory_core.store import durable_sessions
from tests.domain.transcripts import call, completed, message
from tests.factories import Store
from tests.jobs.working import look

HERE = Directory(host="box", device="7", inode="42", path="/srv/repo")
_leases = itertools.count(1)


@dataclass
class Agent:
    """Whoever works on one session."""

    store: Store
    directory: Directory = HERE
    session: bytes = b""
    lease: bytes = field(default=b"", repr=False)

    def start(self, **more: Any) -> Agent:
        self.session = id_bytes(self.store.apply(StartSession(directory=self.directory, **more))["id"])
        return self

    def claim(self) -> Any:
        """Claim and replay."""
        lease = hashlib.sha256(f"lease {next(_leases)}".encode()).digest()
        answer = self.store.apply(
            ClaimSession(session=self.session, lease_hash=lease, directory=self.directory)
        )
        self.lease = lease
        return answer

    def replay(self) -> Any:
        state = self.state
        return self.store.apply(
            SayReplayed(
                session=self.session,
                lease_hash=self.lease,
                directory=self.directory.id,
                last_sequence=state.last_sequence,
                digest=state.digest,
            )
        )

    def append(self, *events: tuple[str, Any], expected: int | None = None) -> Any:
        """A turn of events, each a kind and its payload."""
        return self.store.apply(
            AppendTurn(
                session=self.session,
                lease_hash=self.lease,
                directory=self.directory.id,
                expected_last_sequence=self.state.last_sequence if expected is None else expected,
                events=tuple(TurnEvent(kind=kind, payload=payload) for kind, payload in events),
            )
        )

    def stage(self, *prompts: str, of: int) -> Any:
        """The first events of a turn of `of`, which nobody sees."""
        return self.store.apply(
            StageTurn(
                session=self.session,
                lease_hash=self.lease,
                directory=self.directory.id,
                expected_last_sequence=self.state.last_sequence,
                turn_size=of,
                first_index=0,
                events=tuple(TurnEvent(kind="user_message", payload=message(text)) for text in prompts),
            )
        )

    def say(self, prompt: str, answer: str) -> Any:
        """A turn of two events."""
        return self.append(("user_message", message(prompt)), ("assistant_message", message(answer)))

    def run(self, prompt: str, command: str, result: str, answer: str, *, is_error: bool = False) -> Any:
        """A turn in which a tool ran."""
        call_id = f"call-{self.state.last_sequence}"
        return self.append(
            ("user_message", message(prompt)),
            ("tool_call", message("", calls=[call(call_id, "bash", command=command)])),
            ("audit", completed(call_id, is_error=is_error)),
            ("tool_result", message(result, answers=call_id)),
            ("assistant_message", message(answer)),
        )

    def release(self) -> Any:
        return self.store.apply(ReleaseLease(session=self.session, lease_hash=self.lease))

    def close(self) -> Any:
        return self.store.apply(
            CloseSession(session=self.session, lease_hash=self.lease, directory=self.directory.id)
        )

    def compact(self, through: int) -> Any:
        return self.store.apply(QueueCompaction(session=self.session, through_sequence=through))

    @property
    def state(self) -> DurableSession:
        found = durable_sessions.one(look(self.store), self.session)
        assert found is not None
        return found

    @property
    def events(self) -> list[dict[str, Any]]:
        return self.store.all(
            "SELECT * FROM session_events WHERE session_id = ? ORDER BY sequence", self.session
        )


def working(store: Store, turns: int = 0) -> Agent:
    """An agent with a session of its own, claimed, with that many turns of two events each."""
    agent = Agent(store).start()
    agent.claim()
    for number in range(1, turns + 1):
        agent.say(f"Prompt {number}", f"Answer {number}")
    return agent

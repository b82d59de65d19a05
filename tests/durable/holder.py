"""Somebody who works on a durable session: its holder, over commands that are applied to a real database."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from memory_core.commands.durable_sessions import ClaimSession, ReleaseLease, SayReplayed, StartSession
from memory_core.commands.tool_checkpoints import (
    CheckpointRound,
    EndTurn,
    FailTurn,
    PublishRecovery,
    StageCheckpoint,
)
from memory_core.commands.tool_journal import (
    AskApproval,
    BeginTurn,
    CompleteCall,
    DecideApproval,
    OpenBatch,
    ReconcileCall,
    StartCall,
)
from memory_core.domain.agent_message import Message, Role, ToolCall, payload, read_message, said
from memory_core.domain.audit_event import AuditEvent, ModelCompleted, ModelStarted, TurnCompleted
from memory_core.domain.audit_event import payload as event_payload
from memory_core.domain.command import Refusal
from memory_core.domain.directory import Directory
from memory_core.domain.tool_journal import Journal
from memory_core.ids import id_bytes
from memory_core.store import tool_journal
from tests.durable.journals import HERE, asks, new_id, prompt
from tests.factories import Store

PLACE = Directory(host=HERE.host, device=HERE.device, inode=HERE.inode, path="/home/ada/uploader")
RECEIVED = b"r" * 16


@dataclass(kw_only=True)
class Worker:
    """Every method applies one command as `ada` and gives its answer, or its refusal."""

    store: Store
    session: bytes = b""
    lease: bytes = b""
    turn: str = ""
    rounds: int = 0
    journal_directory: Directory = field(default=PLACE)

    @property
    def holder(self) -> dict[str, Any]:
        return {"session": self.session, "lease_hash": self.lease, "directory": self.journal_directory.id}

    def apply(self, command: Any) -> Any:
        return self.store.apply(command, token_scope="write")

    # --- the session ---

    def claim(self) -> Any:
        """Claim and, where it is asked for, say that it was replayed."""
        self.lease = hashlib.sha256(os.urandom(32)).digest()
        answer = self.apply(ClaimSession(session=self.session, lease_hash=self.lease, directory=PLACE))
        if not isinstance(answer, Refusal) and answer["must_replay"]:
            (head,) = self.store.all(
                "SELECT last_sequence, digest FROM durable_sessions WHERE session_id = ?", self.session
            )
            self.apply(SayReplayed(**self.holder, **head))
        return answer

    def release(self) -> Any:
        return self.apply(ReleaseLease(session=self.session, lease_hash=self.lease))

    def vanish(self) -> None:
        """Its process dies: the lease ends by itself, and another one comes."""
        self.store.clock.advance(301)
        answer = self.claim()
        assert not isinstance(answer, Refusal), answer

    # --- the turn ---

    def begin(self, message: Message | None = None) -> Any:
        self.turn, self.rounds = new_id(), 0
        return self.apply(
            BeginTurn(**self.holder, turn=id_bytes(self.turn), input=payload(message or prompt()))
        )

    def plan(self, *calls: ToolCall, **overrides: Any) -> Any:
        values: dict[str, Any] = {
            "turn": id_bytes(self.turn),
            "message": payload(asks(*calls)),
            "round": self.rounds + 1,
            "usage": (("output_tokens", 7),),
            "starts_turn": self.rounds == 0,
            "received": (RECEIVED,) * len(calls),
        }
        return self.apply(OpenBatch(**self.holder, **values | overrides))

    def ask(self, call: ToolCall, **overrides: Any) -> Any:
        values: dict[str, Any] = {
            "call": id_bytes(call.id),
            "received": RECEIVED,
            "asked_in": HERE,
            "workspace_root": PLACE.path,
            "reason": "runs a command",
        }
        return self.apply(AskApproval(**self.holder, **values | overrides))

    def decide(self, call: ToolCall, *, is_allowed: bool, reason: str | None = None) -> Any:
        return self.apply(
            DecideApproval(**self.holder, call=id_bytes(call.id), is_allowed=is_allowed, reason=reason)
        )

    def start(self, call: ToolCall, received: bytes = RECEIVED) -> Any:
        return self.apply(StartCall(**self.holder, call=id_bytes(call.id), received=received))

    def complete(self, call: ToolCall, content: str = "3 passed", **overrides: Any) -> Any:
        values: dict[str, Any] = {"origin": "tool", "content": content, "is_error": False}
        return self.apply(CompleteCall(**self.holder, call=id_bytes(call.id), **values | overrides))

    def run(self, *calls: ToolCall) -> None:
        for call in calls:
            assert not isinstance(self.start(call), Refusal)
            assert not isinstance(self.complete(call), Refusal)

    def stage(self, *, is_first: bool, ending: Any = "round", audit: Sequence[AuditEvent] = ()) -> Any:
        """One slice of what will close the open batch."""
        return self.apply(
            StageCheckpoint(
                **self.holder,
                turn=None if ending == "recovery" else id_bytes(self.turn),
                ending=ending,
                is_first=is_first,
                audit=[event_payload(event) for event in audit],
            )
        )

    def checkpoint(self, **overrides: Any) -> Any:
        answer = self.apply(CheckpointRound(**self.holder, turn=id_bytes(self.turn), **overrides))
        if not isinstance(answer, Refusal):
            self.rounds += 1
        return answer

    def end(self, text: str | None = "All tests pass.", audit: list[AuditEvent] | None = None) -> Any:
        """With an answer, or (None) with the open batch."""
        over = TurnCompleted(turn_id=self.turn, model_rounds=self.rounds + 1)
        spoken = [
            ModelStarted(turn_id=self.turn, round=self.rounds + 1),
            ModelCompleted(turn_id=self.turn, round=self.rounds + 1, finish_reason="stop"),
        ]
        told = audit if audit is not None else [over] if text is None else [*spoken, over]
        return self.apply(
            EndTurn(
                **self.holder,
                turn=id_bytes(self.turn),
                message=None if text is None else payload(said(Role.ASSISTANT, text)),
                audit=[event_payload(event) for event in told],
            )
        )

    def fail(self, error: str, *audit: AuditEvent) -> Any:
        return self.apply(
            FailTurn(
                **self.holder,
                turn=id_bytes(self.turn),
                error=error,
                audit=[event_payload(event) for event in audit],
            )
        )

    # --- recovery ---

    def reconcile(self, call: ToolCall, *, accept: bool = False) -> Any:
        return self.apply(ReconcileCall(**self.holder, call=id_bytes(call.id), accept_unknown_effects=accept))

    def publish(self) -> Any:
        return self.apply(PublishRecovery(**self.holder))

    # --- what there is ---

    def journal(self) -> Journal:
        with self.store.transaction() as tx:
            return tool_journal.journal(tx, self.session, PLACE.id)

    def kinds(self) -> list[str]:
        rows = self.store.all(
            "SELECT kind FROM session_events WHERE session_id = ? ORDER BY sequence", self.session
        )
        return [row["kind"] for row in rows]


def worker(store: Store) -> Worker:
    """Somebody who holds a new session."""
    made = Worker(store=store)
    started = made.apply(StartSession(directory=PLACE))
    assert not isinstance(started, Refusal), started
    made.session = id_bytes(started["id"])
    assert not isinstance(made.claim(), Refusal)
    return made


def history(store: Store) -> list[Message]:
    """The messages of the one session, as a resume would read them."""
    spoken = ("user_message", "assistant_message", "tool_call", "tool_result")
    rows = store.all(f"SELECT payload_json FROM session_events WHERE kind IN {spoken} ORDER BY sequence")
    return [read_message(json.loads(row["payload_json"])) for row in rows]


def refused(answer: Any, code: str = "conflict") -> str:
    assert isinstance(answer, Refusal), answer
    assert answer.code == code, answer
    return answer.message


def events(store: Store) -> list[dict[str, Any]]:
    rows = store.all("SELECT payload_json FROM session_events WHERE kind = 'audit' ORDER BY sequence")
    return [json.loads(row["payload_json"])["event"] for row in rows]

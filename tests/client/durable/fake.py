"""A server of one session in memory, on the real rules of the journal, for tests of order and of what no server does."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from client.durable.errors import UncertainToolInvocations
from client.durable.port import Event, OpenTurn, Replay, SessionPort, Written, passed_over
from memory_core.domain import agent_message, tool_checkpoint, tool_steps
from memory_core.domain.agent_message import AssetKind, AssetReference, Message, ToolCall
from memory_core.domain.audit_event import ApprovalRequested, ApprovalResolved, AuditEvent, ToolOutput
from memory_core.domain.directory import Directory
from memory_core.domain.tool_checkpoint import Checkpoint
from memory_core.domain.tool_journal import CallState, Journal, Origin
from memory_core.errors import (
    SessionBusy,
    SnapshotMismatch,
    StaleReplay,
    StaleSessionLease,
    UncertainCalls,
)
from tests.client.durable.steps import Steps


class FakeServer:
    """What one session is on the server; `port` is a program's way to it."""

    def __init__(self) -> None:
        self.steps = Steps()
        self.journal = Journal(directory=Directory(host="?", device="0", inode="0", path="/"))
        self.events: list[Event] = []
        self.snapshot: Mapping[str, Any] | None = None
        self.title = ""
        self.holder: FakePort | None = None
        #: Texts that the server redacts and the client does not know.
        self.secrets: list[str] = []
        self.distillations = 0
        self.assets: dict[str, bytes] = {}

    def begin(self, directory: Directory) -> None:
        """The one session, in that directory."""
        self.journal = Journal(directory=directory.id)

    def port(self, directory: Directory) -> SessionPort:
        return self.steps.of(FakePort(self))

    @property
    def is_settled(self) -> bool:
        """No turn is open."""
        return self.journal.turn is None and self.journal.batch is None

    @property
    def is_held(self) -> bool:
        return self.holder is not None

    def expire(self) -> None:
        """The lease is over, and somebody cleared it."""
        self.holder = None

    def result_of(self, call: int) -> str:
        """What the journal holds of a call of the open batch."""
        output = self.journal.open_batch.invocations[call].output
        assert output is not None
        return output.content

    def accept_unknown_effects(self, directory: Directory) -> None:
        """Recover the session, as somebody who has looked."""
        port = FakePort(self)
        port.claim()
        port.recover(accept_unknown_effects=True)
        port.release()

    def write(self, checkpoint: Checkpoint, expected: int) -> Written:
        if expected != len(self.events):
            raise StaleReplay
        first = len(self.events) + 1
        for event in checkpoint.events:
            self.events.append(
                Event(
                    sequence=len(self.events) + 1,
                    kind=str(event.kind),
                    payload=json.loads(event.payload_json),
                    assets=[
                        {"sha256": link.sha256.hex(), "bytes": link.bytes, "kind": str(link.kind)}
                        for link in event.assets
                    ],
                )
            )
        self.journal = checkpoint.journal
        return Written(first_sequence=first, last_sequence=len(self.events))

    def redacted(self, message: Message) -> Message:
        def clean(value: Any) -> Any:
            if isinstance(value, str):
                for secret in self.secrets:
                    value = value.replace(secret, "[REDACTED:test:0000]")
                return value
            if isinstance(value, dict):
                return {name: clean(item) for name, item in value.items()}
            return [clean(item) for item in value] if isinstance(value, list) else value

        return agent_message.read_message(clean(agent_message.payload(message)))


class FakePort:
    """Fulfils `SessionPort`."""

    session_id = "01890000-0000-7000-8000-00000000d0d0"

    def __init__(self, server: FakeServer) -> None:
        self._server = server

    @property
    def has_lease(self) -> bool:
        return self._server.holder is self

    # --- the lease ---

    def claim(self) -> None:
        if self._server.holder not in (None, self):
            raise SessionBusy(detail={"lease_until": "2026-01-01T00:00:00Z"})
        self._server.holder = self

    def renew(self) -> None:
        self._check_lease()

    def release(self, *, is_patient: bool = True) -> None:
        if self.has_lease:
            self._server.holder = None

    # --- the transcript ---

    def replay(self, take: Callable[[Event], None] = passed_over) -> Replay:
        self._check_lease()
        for event in self._server.events:
            take(event)
        return Replay(
            session={},
            snapshot=self._server.snapshot,
            last_sequence=len(self._server.events),
            digest=hashlib.sha256(repr(self._server.events).encode()).hexdigest(),
        )

    def confirm_replay(self, replay: Replay) -> None:
        self._check_lease()

    def events_after(self, sequence: int, last: int) -> Sequence[Event]:
        return self._server.events[sequence:last]

    def store_snapshot(self, snapshot: Mapping[str, Any]) -> None:
        self._check_lease()
        if self._server.snapshot not in (None, snapshot):
            raise SnapshotMismatch
        self._server.snapshot = snapshot

    def set_title(self, title: str) -> None:
        self._check_lease()
        self._server.title = title

    # --- the turn under way ---

    def journal(self) -> OpenTurn | None:
        turn = self._server.journal.turn
        return None if turn is None else OpenTurn(turn_id=turn.turn_id, input=turn.input)

    def begin_turn(self, turn_id: str, message: Message) -> bool:
        kept = self._server.redacted(message)
        self._advance(tool_steps.begun, turn_id, kept)
        return kept != message

    def open_batch(self, turn_id: str, message: Message, audit: Sequence[AuditEvent]) -> bool:
        number = tool_steps.round_of(turn_id, audit, message.tool_calls)
        kept = self._server.redacted(message)
        self._advance(tool_steps.planned, kept, number)
        return kept != message

    def audit_call(self, event: ApprovalRequested | ApprovalResolved) -> None:
        self._advance(tool_steps.audited, event)

    def start_call(self, call: ToolCall) -> None:
        self._advance(tool_steps.started, call.id)

    def complete_call(
        self, call_id: str, output: ToolOutput, origin: Origin, denied: ApprovalResolved | None = None
    ) -> bool:
        self._advance(tool_steps.completed, call_id, output, origin, denied)
        return False

    def checkpoint_round(self, turn_id: str, *, expected: int) -> Written:
        self._check_lease()
        return self._server.write(tool_checkpoint.round_done(self._server.journal), expected)

    def end_turn(
        self, turn_id: str, message: Message, audit: Sequence[AuditEvent], *, expected: int
    ) -> Written:
        self._check_lease()
        kept = self._server.redacted(message)
        written = self._server.write(tool_checkpoint.turn_done(self._server.journal, kept, audit), expected)
        return Written(
            first_sequence=written.first_sequence,
            last_sequence=written.last_sequence,
            is_redacted=kept != message,
        )

    def fail_turn(self, turn_id: str, error: str, audit: Sequence[AuditEvent], *, expected: int) -> Written:
        self._check_lease()
        return self._server.write(tool_checkpoint.turn_failed(self._server.journal, error, audit), expected)

    # --- beside it ---

    def take_in_asset(self, source: bytes, kind: str) -> AssetReference:
        digest = hashlib.sha256(source).hexdigest()
        self._server.assets[digest] = source
        return AssetReference(digest, len(source), AssetKind(kind))

    def read_asset(self, reference: AssetReference) -> bytes:
        return self._server.assets[reference.sha256]

    # --- ends ---

    def recover(self, *, accept_unknown_effects: bool) -> Mapping[str, Any]:
        self._check_lease()
        batch = self._server.journal.batch
        if batch is not None:
            try:
                tool_steps.check_effects(batch, accept_unknown_effects=accept_unknown_effects)
            except UncertainCalls as error:
                raise UncertainToolInvocations(str(error), detail=error.detail) from error
            for each in batch.invocations:
                if each.state is not CallState.COMPLETED:
                    self._advance(tool_steps.closed, each.call.id)
        checkpoint, report = tool_checkpoint.recovered(self._server.journal)
        self._server.write(checkpoint, len(self._server.events))
        return {"uncertain_results": report.uncertain}

    def close(self) -> str | None:
        self._check_lease()
        self._server.holder = None
        self._server.distillations += bool(self._server.events)
        return "job" if self._server.events else None

    # --- inside ---

    def _check_lease(self) -> None:
        if not self.has_lease:
            raise StaleSessionLease

    def _advance(self, step: Callable[..., Journal], *arguments: Any) -> None:
        self._check_lease()
        self._server.journal = step(self._server.journal, *arguments)

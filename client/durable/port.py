"""What a session needs of its server, as a port: `client.durable.routes` reaches it over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Protocol

from memory_core.domain.agent_message import AssetReference, Message, ToolCall
from memory_core.domain.audit_event import ApprovalRequested, ApprovalResolved, AuditEvent, ToolOutput
from memory_core.domain.tool_journal import Origin


@dataclass(frozen=True, kw_only=True)
class Written:
    """What the transcript is after a checkpoint."""

    first_sequence: int
    last_sequence: int
    #: The server found secrets in it that the client had not: what is stored differs from what was sent.
    is_redacted: bool = False

    @property
    def count(self) -> int:
        return self.last_sequence - self.first_sequence + 1


@dataclass(frozen=True, kw_only=True)
class Event:
    """One event of a transcript."""

    sequence: int
    kind: str
    payload: Mapping[str, Any]
    #: What it refers to, as its links say: `sha256`, `bytes`, `kind`.
    assets: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, kw_only=True)
class Replay:
    """What a replay said besides its events."""

    session: Mapping[str, Any]
    snapshot: Mapping[str, Any] | None
    last_sequence: int
    digest: str


def passed_over(_event: Event) -> None:
    """Takes the events of a replay that is only read to its end."""


@dataclass(frozen=True, kw_only=True)
class OpenTurn:
    """What the journal holds of a turn that has not ended."""

    turn_id: str
    input: Message
    #: Names of calls by id, of the open batch.
    calls: Mapping[str, str] = field(default_factory=dict[str, str])


class SessionPort(Protocol):
    """One session on its server, with the lease that this program holds. Every method may raise `CoreError`.

    Each write is sent with a key of its own until there is an answer, so it takes effect once.
    """

    @property
    def session_id(self) -> str: ...

    # --- the lease ---
    def claim(self) -> None: ...
    def renew(self) -> None: ...
    def release(self, *, is_patient: bool = True) -> None: ...

    # --- the transcript ---
    def replay(self, take: Callable[[Event], None] = passed_over) -> Replay:
        """Read the transcript, a summary in the place of its beginning where there is one. Each event is given to `take` and not
        kept; what was given counts only when this returns."""
        ...

    def confirm_replay(self, replay: Replay) -> None: ...
    def events_after(self, sequence: int, last: int) -> Iterable[Event]:
        """Those behind `sequence` up to `last`, a page at a time."""
        ...

    def store_snapshot(self, snapshot: Mapping[str, Any]) -> None: ...
    def set_title(self, title: str) -> None: ...

    # --- the turn under way ---
    def journal(self) -> OpenTurn | None: ...
    def begin_turn(self, turn_id: str, message: Message) -> bool:
        """Whether the server redacted more of it than the client had."""
        ...

    def open_batch(self, turn_id: str, message: Message, audit: Sequence[AuditEvent]) -> bool:
        """Plan the calls of an assistant's message. Answers as `begin_turn`."""
        ...

    def audit_call(self, event: ApprovalRequested | ApprovalResolved) -> None: ...
    def start_call(self, call: ToolCall) -> None: ...
    def complete_call(
        self, call_id: str, output: ToolOutput, origin: Origin, denied: ApprovalResolved | None = None
    ) -> bool:
        """As `begin_turn`."""
        ...

    # Each of these names where the transcript ends as far as this program knows, and is refused where it does not.
    def checkpoint_round(self, turn_id: str, *, expected: int) -> Written:
        """Every call of the open batch has its result: write the round into the transcript."""
        ...

    def end_turn(
        self, turn_id: str, message: Message, audit: Sequence[AuditEvent], *, expected: int
    ) -> Written:
        """The turn ends with the assistant's last message."""
        ...

    def fail_turn(self, turn_id: str, error: str, audit: Sequence[AuditEvent], *, expected: int) -> Written:
        """The turn ends without an answer; an open batch of which no call was started is forgotten."""
        ...

    # --- beside it ---
    def take_in_asset(self, source: bytes | str | PathLike[str], kind: str) -> AssetReference: ...
    def read_asset(self, reference: AssetReference) -> bytes: ...
    def compact(self, context_window: int, current_tokens: int | None) -> Mapping[str, Any]: ...

    # --- ends ---
    def recover(self, *, accept_unknown_effects: bool) -> Mapping[str, Any]: ...
    def close(self) -> str | None: ...

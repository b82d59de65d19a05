"""The journal of an agent's turn under way: its input, then round by round the tool calls that a model asks for.

A call is planned, started, completed; calls of one batch may run side by side. The steps are in `tool_steps`, what
must hold in `tool_grammar`, what reaches the transcript in `tool_checkpoint`. Drawn in `docs/durable-sessions.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from memory_core.domain.agent_message import Message, ToolCall, tool_answer
from memory_core.domain.audit_event import AuditEvent, CallEvent, ToolOutput
from memory_core.domain.directory import DirectoryId
from memory_core.errors import Conflict, NotFound


class CallState(StrEnum):
    PLANNED = "planned"
    STARTED = "started"
    COMPLETED = "completed"


class Origin(StrEnum):
    """Where a result comes from."""

    #: The tool itself, or the harness in its place: denied, unknown tool, arguments that do not fit.
    TOOL = "tool"
    #: It was started and nobody knows what became of it.
    UNCERTAIN = "uncertain"
    NOT_EXECUTED = "not_executed"
    #: Only of sessions that hooks tell of: nobody told how it ended.
    UNOBSERVED = "unobserved"


#: What stands in the place of a result that there is none of.
NOT_EXECUTED_TEXT: Final = "Not executed: the turn was interrupted before this call was started."
UNCERTAIN_TEXT: Final = (
    "No result: this call was started and the turn was interrupted. Its effect may have happened; look before you"
    " call it again."
)
INTERRUPTED_TEXT: Final = "the turn was interrupted before somebody decided"


DENIED: Final = "Denied by the user"


def denial_text(reason: str | None) -> str:
    """What the model is told when a person denies a call."""
    return f"{DENIED}: {reason}" if reason else f"{DENIED}."


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """One call of a batch. `output` and `origin` are there when it is completed, and only then."""

    call: ToolCall
    state: CallState = CallState.PLANNED
    output: ToolOutput | None = None
    origin: Origin | None = None
    #: Keyed hash of the call as it was received, before redaction; what is started later must have the same.
    received_hash: str = ""

    @property
    def result(self) -> Message | None:
        return None if self.output is None else tool_answer(self.call.id, self.output.content)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveTurn:
    turn_id: str
    input: Message
    #: How many of its batches are in the transcript, and what they came to there.
    checkpoint_count: int = 0
    event_count: int = 0
    event_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The calls of one model round. `messages` are the turn's input (in its first batch only) and the assistant's message."""

    turn_id: str
    messages: tuple[Message, ...]
    audit: tuple[AuditEvent, ...]
    invocations: tuple[Invocation, ...]

    def invocation(self, call_id: str) -> Invocation:
        for each in self.invocations:
            if each.call.id == call_id:
                return each
        raise NotFound(f"the open tool batch has no call {call_id!r}")

    def events_of(self, call_id: str) -> list[CallEvent]:
        return [event for event in self.audit if isinstance(event, CallEvent) and event.call_id == call_id]

    @property
    def is_untouched(self) -> bool:
        """No call was started: it may be thrown away."""
        return all(each.state is CallState.PLANNED for each in self.invocations)

    @property
    def is_complete(self) -> bool:
        return all(each.state is CallState.COMPLETED for each in self.invocations)

    @property
    def results(self) -> tuple[Message, ...]:
        """The results that there are, in the order of the calls."""
        return tuple(result for each in self.invocations if (result := each.result) is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    """What is open in a session that works in `directory`."""

    directory: DirectoryId
    turn: ActiveTurn | None = None
    batch: Batch | None = None

    @property
    def open_turn(self) -> ActiveTurn:
        if self.turn is None:
            raise Conflict("no turn is open in this session; begin one")
        return self.turn

    @property
    def open_batch(self) -> Batch:
        if self.batch is None:
            raise Conflict("no tool batch is open in this session")
        return self.batch

"""What must hold of an open journal. Asked after every step and at every load: a journal that breaks it takes no step.

The audit of a batch begins with its round (`[turn_started] model_started tool_call… model_completed`) and goes on with
the events of its calls, each call's own in its order and those of different calls mixed as they happened:
`[approval_requested [approval_resolved]] [tool_started] [tool_completed]`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

from memory_core import limits
from memory_core.domain import agent_message
from memory_core.domain.agent_message import Role, tool_answer
from memory_core.domain.audit_event import (
    TOOL_CALLS,
    ApprovalRequested,
    ApprovalResolved,
    AuditEvent,
    CallEvent,
    CallPlanned,
    Cancelled,
    ModelCompleted,
    ModelStarted,
    ToolCompleted,
    ToolStarted,
    TurnCompleted,
    TurnFailed,
    TurnStarted,
)
from memory_core.domain.directory import DirectoryId
from memory_core.domain.json_fields import utf8_bytes
from memory_core.domain.tool_journal import (
    ActiveTurn,
    Batch,
    CallState,
    Invocation,
    Journal,
    Origin,
    denial_text,
)
from memory_core.errors import Invalid

E = TypeVar("E", bound=CallEvent)
#: In which order the events of one call come, each at most once.
_ORDER: Final = (ApprovalRequested, ApprovalResolved, ToolStarted, ToolCompleted)
_PLACEHOLDER: Final = "?"


def check(journal: Journal) -> None:
    """Raise `Invalid` with the first rule that the journal breaks."""
    batch = journal.batch
    if batch is None:
        return
    if journal.turn is None:
        raise Invalid("a tool batch is open and no turn is")
    _check_plan(journal.turn, batch)
    _check_sizes(batch)
    calls_from = check_round(journal.turn, batch)
    _check_calls(journal.directory, batch, calls_from)
    _check_history(batch)


def check_turn_events(turn: ActiveTurn, events: Sequence[AuditEvent], *, is_failed: bool) -> None:
    """The audit of a turn that ends without an open batch: what it was about, and how it ended.

    `[turn_started] [model_started tool_call… [model_completed]] turn_completed`, or `cancelled` or `turn_failed`.
    """
    ends = (Cancelled, TurnFailed) if is_failed else (TurnCompleted,)
    if not events or not isinstance(events[-1], ends):
        raise Invalid(f"the audit of a turn ends with {' or '.join(end.type for end in ends)}")
    order = (TurnStarted, ModelStarted, CallPlanned, ModelCompleted, ends)
    rank = -1
    for event in events:
        found = next((place for place, kind in enumerate(order) if isinstance(event, kind)), rank)
        if found < rank or (found == rank and not isinstance(event, CallPlanned)):
            raise Invalid(f"{event.type} has no place there in the audit of a turn")
        rank = found
        _check_turn(turn, event)
    if isinstance(events[0], TurnStarted) and turn.checkpoint_count:
        raise Invalid("turn_started stands in the first checkpoint of a turn only")


# --- the round -----------------------------------------------------------------------------------


def _check_plan(turn: ActiveTurn, batch: Batch) -> None:
    if batch.turn_id != turn.turn_id:
        raise Invalid("the tool batch belongs to another turn")
    expected = 1 if turn.checkpoint_count else 2
    if len(batch.messages) != expected:
        raise Invalid(f"a batch after {turn.checkpoint_count} checkpoint(s) plans {expected} message(s)")
    if expected == 2 and batch.messages[0] != turn.input:
        raise Invalid("the first batch of a turn begins with the turn's input")
    answer = batch.messages[-1]
    if answer.role is not Role.ASSISTANT or not answer.tool_calls:
        raise Invalid("a batch ends with a message of the assistant that calls tools")
    if answer.tool_calls != tuple(each.call for each in batch.invocations):
        raise Invalid("the calls of a batch are those of its message, in their order")


def _check_sizes(batch: Batch) -> None:
    outputs = [utf8_bytes(result.text) for result in batch.results]
    if any(size > limits.TOOL_OUTPUT_MAX_BYTES for size in outputs):
        raise Invalid(f"one output is at most {limits.TOOL_OUTPUT_MAX_BYTES} bytes")
    if sum(outputs) > limits.TURN_TOOL_OUTPUT_MAX_BYTES:
        raise Invalid(f"all outputs of a round are at most {limits.TURN_TOOL_OUTPUT_MAX_BYTES} bytes")


def check_round(turn: ActiveTurn, batch: Batch) -> int:
    """Where in the audit the round ends and its calls' own events begin."""
    at = 1 if batch.audit and isinstance(batch.audit[0], TurnStarted) else 0
    if at and turn.checkpoint_count:
        raise Invalid("turn_started stands in the first checkpoint of a turn only")
    calls = len(batch.invocations)
    end = at + calls + 2
    if len(batch.audit) < end:
        raise Invalid("the audit of a batch begins with model_started, each tool_call, model_completed")
    begun, ended = batch.audit[at], batch.audit[end - 1]
    if not isinstance(begun, ModelStarted) or not isinstance(ended, ModelCompleted):
        raise Invalid("the audit of a batch begins with model_started, each tool_call, model_completed")
    if ended.finish_reason != TOOL_CALLS:
        raise Invalid(f"a model that calls tools finishes with {TOOL_CALLS!r}")
    if begun.round <= turn.checkpoint_count or ended.round != begun.round:
        raise Invalid("the events of a batch are of one round, which comes after those in the transcript")
    for event, invocation in zip(batch.audit[at + 1 : end - 1], batch.invocations, strict=True):
        if not isinstance(event, CallPlanned) or event.call != invocation.call or event.round != begun.round:
            raise Invalid("the tool_call events of a batch are its calls, in their order")
    for event in batch.audit[:end]:
        _check_turn(turn, event)
    return end


def _check_turn(turn: ActiveTurn, event: AuditEvent) -> None:
    if not isinstance(event, CallEvent) and event.turn_id != turn.turn_id:
        raise Invalid(f"{event.type} speaks of another turn")


# --- the calls -----------------------------------------------------------------------------------


def _check_calls(directory: DirectoryId, batch: Batch, calls_from: int) -> None:
    for event in batch.audit[calls_from:]:
        if not isinstance(event, CallEvent):
            raise Invalid(f"{event.type} has no place behind the calls of a batch")
        if not any(each.call.id == event.call_id for each in batch.invocations):
            raise Invalid(f"{event.type} speaks of a call that is not in the batch")
    for invocation in batch.invocations:
        _check_call(directory, invocation, batch.events_of(invocation.call.id))


def _check_call(directory: DirectoryId, invocation: Invocation, events: Sequence[CallEvent]) -> None:
    ranks = [_ORDER.index(type(event)) for event in events]
    if ranks != sorted(set(ranks)):
        raise Invalid("the events of a call: asked, decided, started, completed, each once, in this order")
    asked, decided = _first(events, ApprovalRequested), _first(events, ApprovalResolved)
    begun, ended = _first(events, ToolStarted), _first(events, ToolCompleted)
    if asked is not None:
        check_request(directory, invocation, asked)
    if decided is not None and asked is None:
        raise Invalid("a decision that nobody asked for")
    if begun is not None:
        _check_start(invocation, begun, asked, decided)
    state = CallState.COMPLETED if ended else CallState.STARTED if begun else CallState.PLANNED
    if invocation.state is not state:
        raise Invalid(f"the call is {invocation.state.value}, its audit says {state.value}")
    if ended is None:
        if invocation.output is not None or invocation.origin is not None:
            raise Invalid("a call that is not completed has no result")
        return
    if ended.tool_name != invocation.call.name or ended.output != invocation.output:
        raise Invalid("the result of a call and its tool_completed differ")
    if asked is not None and decided is None:
        raise Invalid("a call is completed while its approval is open; deny it, or recover the session")
    _check_origin(invocation, decided, is_started=begun is not None)


def _first(events: Sequence[CallEvent], kind: type[E]) -> E | None:
    return next((event for event in events if isinstance(event, kind)), None)


def check_request(directory: DirectoryId, invocation: Invocation, asked: ApprovalRequested) -> None:
    """A person is asked about this call, in this directory, in words that a terminal shows as they are."""
    call = invocation.call
    if (asked.call_id, asked.tool_name, asked.arguments) != (call.id, call.name, call.arguments):
        raise Invalid("the approval is asked for another call than the planned one")
    place = (asked.workspace_host, asked.workspace_device, asked.workspace_inode)
    if place != (directory.host, directory.device, directory.inode):
        raise Invalid("the approval is asked for another directory than the session's")
    if not asked.workspace_root.startswith("/") and not asked.workspace_root[1:3] == ":\\":
        raise Invalid("the approval's workspace_root must be an absolute path")
    if not asked.reason.strip() or utf8_bytes(asked.reason) > limits.APPROVAL_TEXT_MAX_BYTES:
        raise Invalid(f"the approval's reason must be 1 to {limits.APPROVAL_TEXT_MAX_BYTES} bytes")
    if not asked.reason.isprintable():
        raise Invalid("the approval's reason holds a control character")


def _check_start(
    invocation: Invocation,
    begun: ToolStarted,
    asked: ApprovalRequested | None,
    decided: ApprovalResolved | None,
) -> None:
    if begun.tool_name != invocation.call.name:
        raise Invalid("another tool was started than the planned one")
    if asked is not None and decided is None:
        raise Invalid("a call is started while its approval is open")
    if decided is not None and not decided.is_allowed:
        raise Invalid("a call that was denied is never started")


def _check_origin(invocation: Invocation, decided: ApprovalResolved | None, *, is_started: bool) -> None:
    output, origin = invocation.output, invocation.origin
    if output is None or origin is None:
        raise Invalid("a completed call has a result and an origin")
    if origin is Origin.UNOBSERVED:
        raise Invalid("only what hooks tell of is unobserved")
    if origin is Origin.UNCERTAIN and not (is_started and output.is_error):
        raise Invalid("an uncertain result is an error of a call that was started")
    if origin is Origin.NOT_EXECUTED and (is_started or not output.is_error):
        raise Invalid("a call that was not executed has an error and was never started")
    if origin is Origin.TOOL and not is_started:
        if not output.is_error:
            raise Invalid("a call succeeds only after it was started")
        if decided is not None and decided.is_allowed:
            raise Invalid("a call that was allowed and not started is not_executed")
        if decided is not None and output.content != denial_text(decided.reason):
            raise Invalid("the result of a denied call says that it was denied, and why")


def _check_history(batch: Batch) -> None:
    """Messages and results, with something in the place of those that are missing, are a history that goes on."""
    answers = [each.result or tool_answer(each.call.id, _PLACEHOLDER) for each in batch.invocations]
    agent_message.check_history([*batch.messages, *answers])

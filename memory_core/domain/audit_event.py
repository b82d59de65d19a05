"""What an agent loop did, event by event, as its transcript keeps it. Progress and single words of a model are not kept."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from memory_core import limits
from memory_core.domain.agent_message import TOOL_NAME, ToolCall, call_payload, read_call
from memory_core.domain.json_fields import Fields
from memory_core.errors import Invalid

RECORD: Final = "agent_event"
VERSION: Final = 1
ALLOW_ONCE: Final = "allow_once"
DENY: Final = "deny"
#: Why a model stopped where it wants tools to be called.
TOOL_CALLS: Final = "tool_calls"

_DECISION = re.compile(f"{ALLOW_ONCE}|{DENY}")
_DIGITS = re.compile(rf"[0-9]{{1,{limits.DIRECTORY_NUMBER_MAX_CHARS}}}")
_WORD = re.compile(r"[a-z][a-z0-9_]{0,63}")
_USAGE_FIELDS_MAX = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStarted:
    type: ClassVar = "turn_started"
    turn_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStarted:
    type: ClassVar = "model_started"
    turn_id: str
    #: Which round of the turn it is, from 1.
    round: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPlanned:
    """The model wants a tool to be called."""

    type: ClassVar = "tool_call"
    turn_id: str
    round: int
    call: ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCompleted:
    type: ClassVar = "model_completed"
    turn_id: str
    round: int
    finish_reason: str
    #: Tokens and the like, as the client counts them.
    usage: Mapping[str, int] = field(default_factory=dict[str, int], hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequested:
    """A person is asked whether this one call may run: this tool, with these arguments, in this directory."""

    type: ClassVar = "approval_requested"
    call_id: str
    tool_name: str
    arguments: Mapping[str, Any] = field(hash=False)
    workspace_root: str
    workspace_host: str
    workspace_device: str
    workspace_inode: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalResolved:
    type: ClassVar = "approval_resolved"
    call_id: str
    is_allowed: bool
    #: Why it was denied.
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStarted:
    type: ClassVar = "tool_started"
    call_id: str
    tool_name: str


@dataclass(frozen=True, slots=True)
class ToolOutput:
    content: str
    is_error: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCompleted:
    type: ClassVar = "tool_completed"
    call_id: str
    tool_name: str
    output: ToolOutput


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnCompleted:
    type: ClassVar = "turn_completed"
    turn_id: str
    model_rounds: int
    usage: Mapping[str, int] = field(default_factory=dict[str, int], hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelled:
    type: ClassVar = "cancelled"
    turn_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFailed:
    type: ClassVar = "turn_failed"
    turn_id: str
    message: str


#: Events of one call.
CallEvent = ApprovalRequested | ApprovalResolved | ToolStarted | ToolCompleted
#: Events of a whole turn.
TurnEvent = TurnStarted | ModelStarted | CallPlanned | ModelCompleted | TurnCompleted | Cancelled | TurnFailed
AuditEvent = CallEvent | TurnEvent


def record(event: AuditEvent, ordinal: int) -> dict[str, Any]:
    """The event as it stands in a transcript; `ordinal` counts those of its checkpoint, from 0."""
    return {"record": RECORD, "version": VERSION, "ordinal": ordinal, "event": payload(event)}


def read_record(value: object, where: str = "audit") -> tuple[int, AuditEvent]:
    """Ordinal and event of a record. Raises `Invalid` for anything that is not known here."""
    fields = Fields(value, where)
    fields.fixed("record", RECORD)
    fields.fixed("version", VERSION)
    ordinal = fields.integer("ordinal", at_least=0, at_most=limits.AGENT_TURN_EVENTS_MAX)
    event = read_event(fields.value("event"), f"{where}.event")
    fields.end()
    return ordinal, event


def payload(event: AuditEvent) -> dict[str, Any]:
    """The event as JSON, with its `type`."""
    return {"type": event.type, **_WRITERS[type(event)](event)}


def read_event(value: object, where: str = "event") -> AuditEvent:
    fields = Fields(value, where)
    sort = fields.text("type", at_most=64)
    reader = _READERS.get(sort)
    if reader is None:
        raise Invalid(
            f"{where}: events of the type {sort!r} are not kept; it is one of {', '.join(_READERS)}"
        )
    event = reader(fields)
    fields.end()
    return event


# --- writing -------------------------------------------------------------------------------------


def _of_turn(event: TurnStarted | Cancelled) -> dict[str, Any]:
    return {"turn_id": event.turn_id}


def _of_round(event: ModelStarted) -> dict[str, Any]:
    return {"turn_id": event.turn_id, "round": event.round}


def _of_call(event: CallPlanned) -> dict[str, Any]:
    return {"turn_id": event.turn_id, "round": event.round, "call": call_payload(event.call)}


def _of_model(event: ModelCompleted) -> dict[str, Any]:
    return {
        "turn_id": event.turn_id,
        "round": event.round,
        "finish_reason": event.finish_reason,
        "usage": dict(event.usage),
    }


def _of_request(event: ApprovalRequested) -> dict[str, Any]:
    return {
        "context": {
            "call_id": event.call_id,
            "tool_name": event.tool_name,
            "arguments": dict(event.arguments),
            "workspace_root": event.workspace_root,
            "workspace_host": event.workspace_host,
            "workspace_device": event.workspace_device,
            "workspace_inode": event.workspace_inode,
            "reason": event.reason,
        }
    }


def _of_decision(event: ApprovalResolved) -> dict[str, Any]:
    if event.is_allowed:
        return {"call_id": event.call_id, "decision": {"type": ALLOW_ONCE}}
    return {"call_id": event.call_id, "decision": {"type": DENY, "reason": event.reason}}


def _of_start(event: ToolStarted) -> dict[str, Any]:
    return {"call_id": event.call_id, "tool_name": event.tool_name}


def _of_completion(event: ToolCompleted) -> dict[str, Any]:
    return {
        "call_id": event.call_id,
        "tool_name": event.tool_name,
        "output": {"content": event.output.content, "is_error": event.output.is_error},
    }


def _of_turn_end(event: TurnCompleted) -> dict[str, Any]:
    return {"turn_id": event.turn_id, "model_rounds": event.model_rounds, "usage": dict(event.usage)}


def _of_failure(event: TurnFailed) -> dict[str, Any]:
    return {"turn_id": event.turn_id, "message": event.message}


_WRITERS: Final[Mapping[type[Any], Callable[[Any], dict[str, Any]]]] = {
    TurnStarted: _of_turn,
    ModelStarted: _of_round,
    CallPlanned: _of_call,
    ModelCompleted: _of_model,
    ApprovalRequested: _of_request,
    ApprovalResolved: _of_decision,
    ToolStarted: _of_start,
    ToolCompleted: _of_completion,
    TurnCompleted: _of_turn_end,
    Cancelled: _of_turn,
    TurnFailed: _of_failure,
}


# --- reading -------------------------------------------------------------------------------------


def _round(fields: Fields, name: str = "round") -> int:
    return fields.integer(name, at_least=1, at_most=limits.MODEL_ROUNDS_MAX)


def _tool_name(fields: Fields) -> str:
    return fields.matching("tool_name", TOOL_NAME, "a tool's name")


def _usage(fields: Fields) -> Mapping[str, int]:
    value = fields.value("usage")
    if value is None:
        return {}
    inner = Fields(value, f"{fields.where}.usage")
    names = inner.names()
    if len(names) > _USAGE_FIELDS_MAX or not all(_WORD.fullmatch(name) for name in names):
        raise Invalid(f"{inner.where}: at most {_USAGE_FIELDS_MAX} counts, each with a name in lower case")
    return {name: inner.integer(name, at_least=0) for name in names}


def _read_request(fields: Fields) -> ApprovalRequested:
    context = Fields(fields.value("context"), f"{fields.where}.context")
    event = ApprovalRequested(
        call_id=context.uuid7("call_id"),
        tool_name=_tool_name(context),
        arguments=context.json_object("arguments"),
        workspace_root=context.text("workspace_root", at_least=1, at_most=limits.DIRECTORY_PATH_MAX_BYTES),
        workspace_host=context.text("workspace_host", at_least=1, at_most=limits.DIRECTORY_HOST_MAX_BYTES),
        workspace_device=context.matching("workspace_device", _DIGITS, "decimal digits"),
        workspace_inode=context.matching("workspace_inode", _DIGITS, "decimal digits"),
        reason=context.text("reason", at_least=1, at_most=limits.APPROVAL_TEXT_MAX_BYTES),
    )
    context.end()
    return event


def _read_decision(fields: Fields) -> ApprovalResolved:
    call_id = fields.uuid7("call_id")
    decision = Fields(fields.value("decision"), f"{fields.where}.decision")
    is_allowed = decision.matching("type", _DECISION, f"{ALLOW_ONCE} or {DENY}") == ALLOW_ONCE
    reason = None if is_allowed else decision.optional_text("reason", at_most=limits.APPROVAL_TEXT_MAX_BYTES)
    decision.end()
    return ApprovalResolved(call_id=call_id, is_allowed=is_allowed, reason=reason)


def _read_completion(fields: Fields) -> ToolCompleted:
    call_id, tool_name = fields.uuid7("call_id"), _tool_name(fields)
    return ToolCompleted(
        call_id=call_id, tool_name=tool_name, output=read_output(fields.value("output"), fields.where)
    )


def read_output(value: object, where: str = "event") -> ToolOutput:
    """What a tool said, and whether that is an error."""
    output = Fields(value, f"{where}.output")
    found = ToolOutput(
        content=output.text("content", at_least=1, at_most=limits.TOOL_OUTPUT_MAX_BYTES),
        is_error=output.boolean("is_error"),
    )
    output.end()
    return found


def _read_model(fields: Fields) -> ModelCompleted:
    return ModelCompleted(
        turn_id=fields.uuid7("turn_id"),
        round=_round(fields),
        finish_reason=fields.matching("finish_reason", _WORD, "a word in lower case"),
        usage=_usage(fields),
    )


_READERS: Final[Mapping[str, Callable[[Fields], AuditEvent]]] = {
    TurnStarted.type: lambda fields: TurnStarted(turn_id=fields.uuid7("turn_id")),
    ModelStarted.type: lambda fields: ModelStarted(turn_id=fields.uuid7("turn_id"), round=_round(fields)),
    CallPlanned.type: lambda fields: CallPlanned(
        turn_id=fields.uuid7("turn_id"),
        round=_round(fields),
        call=read_call(fields.value("call"), f"{fields.where}.call"),
    ),
    ApprovalRequested.type: _read_request,
    ApprovalResolved.type: _read_decision,
    ToolStarted.type: lambda fields: ToolStarted(
        call_id=fields.uuid7("call_id"), tool_name=_tool_name(fields)
    ),
    ToolCompleted.type: _read_completion,
    ModelCompleted.type: _read_model,
    TurnCompleted.type: lambda fields: TurnCompleted(
        turn_id=fields.uuid7("turn_id"), model_rounds=_round(fields, "model_rounds"), usage=_usage(fields)
    ),
    Cancelled.type: lambda fields: Cancelled(turn_id=fields.uuid7("turn_id")),
    TurnFailed.type: lambda fields: TurnFailed(
        turn_id=fields.uuid7("turn_id"),
        message=fields.text("message", at_least=1, at_most=limits.APPROVAL_TEXT_MAX_BYTES),
    ),
}

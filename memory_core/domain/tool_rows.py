"""A journal as it is stored, and read again: what stands in a batch's calls is not repeated in its audit.

Whatever does not read back as a journal that `tool_grammar` accepts is `Corrupt`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from memory_core import limits
from memory_core.domain import agent_message, audit_event, tool_grammar
from memory_core.domain.agent_message import Message, Role, read_message
from memory_core.domain.audit_event import AuditEvent, ToolOutput
from memory_core.domain.directory import DirectoryId
from memory_core.domain.json_fields import Fields, json_text, parsed, utf8_bytes
from memory_core.domain.tool_journal import (
    ActiveTurn,
    Batch,
    CallState,
    Invocation,
    Journal,
    Origin,
)
from memory_core.errors import Corrupt, Invalid


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTurn:
    turn_id: str
    input_json: str
    checkpoint_count: int
    event_count: int
    event_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCall:
    call_id: str
    ordinal: int
    tool_name: str
    arguments_json: str
    state: str
    result_json: str | None
    result_origin: str | None
    result_is_error: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBatch:
    turn_id: str
    #: The assistant's message; in a turn's first batch before it the digest of the turn's input, which stands in the turn.
    messages_json: str
    audit_json: str
    calls: tuple[StoredCall, ...]
    #: Digests (hexadecimal) of the assets that the batch is linked to; None: nobody asked.
    assets: frozenset[str] | None = None


def turn_row(turn: ActiveTurn) -> StoredTurn:
    return StoredTurn(
        turn_id=turn.turn_id,
        input_json=_input_text(turn.input),
        checkpoint_count=turn.checkpoint_count,
        event_count=turn.event_count,
        event_bytes=turn.event_bytes,
    )


def batch_row(batch: Batch) -> StoredBatch:
    return StoredBatch(
        turn_id=batch.turn_id,
        messages_json=json_text(
            [
                *({"input_sha256": _digest(_input_text(message))} for message in batch.messages[:-1]),
                agent_message.payload(batch.messages[-1]),
            ]
        ),
        audit_json=audit_text(batch),
        calls=tuple(call_row(each, ordinal) for ordinal, each in enumerate(batch.invocations)),
        assets=frozenset(reference.sha256 for reference in agent_message.references(batch.messages)),
    )


def _input_text(message: Message) -> str:
    return json_text(agent_message.payload(message))


def audit_text(batch: Batch) -> str:
    hashes = {each.call.id: each.received_hash for each in batch.invocations}
    return json_text([_compact(event, ordinal, hashes) for ordinal, event in enumerate(batch.audit)])


def call_row(invocation: Invocation, ordinal: int) -> StoredCall:
    result, output = invocation.result, invocation.output
    return StoredCall(
        call_id=invocation.call.id,
        ordinal=ordinal,
        tool_name=invocation.call.name,
        arguments_json=json_text(dict(invocation.call.arguments)),
        state=invocation.state.value,
        result_json=None if result is None else json_text(agent_message.payload(result)),
        result_origin=None if invocation.origin is None else invocation.origin.value,
        result_is_error=None if output is None else output.is_error,
    )


def read_journal(directory: DirectoryId, turn: StoredTurn | None, batch: StoredBatch | None) -> Journal:
    """The journal that is stored. Raises `Corrupt` where it breaks any rule of its own."""
    try:
        active = None if turn is None else _read_turn(turn)
        found = None if batch is None else _read_batch(batch, turn, active)
        journal = Journal(directory=directory, turn=active, batch=found)
        tool_grammar.check(journal)
    except Invalid as error:
        raise Corrupt(
            f"the journal of this session was changed or is damaged: {error}. Nothing in it can be trusted;"
            " the transcript up to its last checkpoint can be read and exported"
        ) from error
    return journal


def _read_turn(row: StoredTurn) -> ActiveTurn:
    if utf8_bytes(row.input_json) > limits.TURN_INPUT_MAX_BYTES:
        raise Invalid(f"the input is at most {limits.TURN_INPUT_MAX_BYTES} bytes")
    message = read_message(parsed(row.input_json, "input"), "input")
    if message.role is not Role.USER:
        raise Invalid("a turn begins with a message of the user")
    return ActiveTurn(
        turn_id=row.turn_id,
        input=message,
        checkpoint_count=row.checkpoint_count,
        event_count=row.event_count,
        event_bytes=row.event_bytes,
    )


def _read_batch(row: StoredBatch, turn_row: StoredTurn | None, turn: ActiveTurn | None) -> Batch:
    if len(row.calls) > limits.TOOL_CALLS_PER_ROUND_MAX:
        raise Invalid(f"more than {limits.TOOL_CALLS_PER_ROUND_MAX} calls in one batch")
    if [call.ordinal for call in row.calls] != list(range(len(row.calls))):
        raise Invalid("the ordinals of the calls have gaps")
    _check_sizes(row)
    values = list(_list(row.messages_json, "messages"))
    inputs: list[Message] = []
    if turn is not None and turn_row is not None and turn.checkpoint_count == 0:
        told = Fields(values.pop(0) if values else None, "messages[0]")
        told.fixed("input_sha256", _digest(turn_row.input_json))
        told.end()
        inputs = [turn.input]
    messages = (*inputs, *(read_message(value, "messages") for value in values))
    linked = frozenset(each.sha256 for each in agent_message.references(messages))
    if row.assets is not None and row.assets != linked:
        raise Invalid("the assets of the batch are not those that its messages refer to")
    invocations = {call.call_id: _read_call(call) for call in row.calls}
    audit: list[AuditEvent] = []
    hashes: dict[str, str] = {}
    for index, value in enumerate(_list(row.audit_json, "audit")):
        ordinal, event = audit_event.read_record(_filled(value, invocations, hashes), f"audit[{index}]")
        if ordinal != index:
            raise Invalid("the ordinals of the audit have gaps")
        audit.append(event)
    return Batch(
        turn_id=row.turn_id,
        messages=messages,
        audit=tuple(audit),
        invocations=tuple(_with_hash(each, hashes) for each in invocations.values()),
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _check_sizes(row: StoredBatch) -> None:
    arguments = [utf8_bytes(call.arguments_json) for call in row.calls]
    results = [utf8_bytes(call.result_json or "") for call in row.calls]
    if (
        max(arguments + results, default=0) > limits.TOOL_CALL_PART_MAX_BYTES
        or sum(arguments) > limits.BATCH_ARGUMENTS_MAX_BYTES
        or max(utf8_bytes(row.messages_json), utf8_bytes(row.audit_json)) > limits.TOOL_BATCH_PART_MAX_BYTES
    ):
        raise Invalid("a part of the batch is longer than it may be")


def _read_call(row: StoredCall) -> Invocation:
    stored = {"id": row.call_id, "name": row.tool_name, "arguments": parsed(row.arguments_json, "arguments")}
    call = agent_message.read_call(stored)
    try:
        state = CallState(row.state)
        origin = None if row.result_origin is None else Origin(row.result_origin)
    except ValueError as error:
        raise Invalid(str(error)) from error
    output = None
    if row.result_json is not None:
        result = read_message(parsed(row.result_json, "result"), "result")
        if result.tool_call_id != row.call_id or row.result_is_error is None:
            raise Invalid("a result answers another call, or does not say whether it is an error")
        output = ToolOutput(result.text, row.result_is_error)
    if (output is None) != (origin is None) or (output is None) != (state is not CallState.COMPLETED):
        raise Invalid("state, result and origin of a call do not agree")
    return Invocation(call=call, state=state, output=output, origin=origin)


def _with_hash(invocation: Invocation, hashes: Mapping[str, str]) -> Invocation:
    return Invocation(
        call=invocation.call,
        state=invocation.state,
        output=invocation.output,
        origin=invocation.origin,
        received_hash=hashes.get(invocation.call.id, ""),
    )


def _list(text: str, where: str) -> Sequence[object]:
    value = parsed(text, where)
    if not isinstance(value, list):
        raise Invalid(f"{where}: a list is expected")
    return cast("list[object]", value)


# --- an audit without what its calls say already ----------------------------------------------------


def _compact(event: AuditEvent, ordinal: int, hashes: Mapping[str, str]) -> dict[str, Any]:
    record = audit_event.record(event, ordinal)
    inner = record["event"]
    if isinstance(event, audit_event.CallPlanned):
        inner["call"] = {"id": event.call.id, "received": hashes.get(event.call.id, "")}
    elif isinstance(event, audit_event.ApprovalRequested):
        del inner["context"]["arguments"]
    elif isinstance(event, audit_event.ToolCompleted):
        del inner["output"]
    return record


def _filled(value: object, calls: Mapping[str, Invocation], hashes: dict[str, str]) -> object:
    """The record with what `_compact` left out. What is not there, or is not as it must be, stays so: reading refuses it."""
    if not isinstance(value, dict):
        return value
    record = cast("dict[str, Any]", value)
    if not isinstance(record.get("event"), dict):
        return record
    event: dict[str, Any] = dict(record["event"])
    sort = event.get("type")
    if sort == audit_event.CallPlanned.type:
        named = Fields(event.get("call"), "audit.call")
        call_id = named.uuid7("id")
        hashes[call_id] = named.text("received", at_most=64)
        named.end()
        event["call"] = agent_message.call_payload(_named(calls, call_id).call)
    elif sort == audit_event.ApprovalRequested.type and isinstance(event.get("context"), dict):
        context: dict[str, Any] = dict(event["context"])
        context["arguments"] = dict(_named(calls, context.get("call_id")).call.arguments)
        event["context"] = context
    elif sort == audit_event.ToolCompleted.type:
        output = _named(calls, event.get("call_id")).output
        if output is None:
            raise Invalid("the audit says that a call is completed which has no result")
        event["output"] = {"content": output.content, "is_error": output.is_error}
    return {**record, "event": event}


def _named(calls: Mapping[str, Invocation], call_id: object) -> Invocation:
    found = calls.get(call_id) if isinstance(call_id, str) else None
    if found is None:
        raise Invalid("the audit speaks of a call that is not in the batch")
    return found

"""The journal of a turn under way over HTTP. Every step is one command, committed before its answer. See docs/durable-sessions.md.

What the journal has is not sent again; what a client repeats (the calls in an audit, the arguments in a question or a start) is
compared here, as it came, and goes no further.
"""

from __future__ import annotations

import logging
from typing import Any

from flask import Blueprint, Response, request

from memory_core import limits
from memory_core.commands.durable_lease import find
from memory_core.commands.tool_journal import (
    AskApproval,
    BeginTurn,
    CompleteCall,
    DecideApproval,
    DiscardBatch,
    OfHolder,
    OpenBatch,
    StartCall,
)
from memory_core.domain import tool_steps
from memory_core.domain.agent_message import (
    ToolCall,
    check_call,
    check_input,
    payload,
    read_call,
    read_message,
)
from memory_core.domain.audit_event import (
    ApprovalRequested,
    ApprovalResolved,
    AuditEvent,
    read_event,
    read_output,
)
from memory_core.domain.directory import DirectoryId
from memory_core.domain.json_fields import UUID7
from memory_core.domain.tool_journal import Journal
from memory_core.errors import Invalid, NotFound
from memory_core.ids import id_bytes
from memory_core.store import durable_sessions, tool_journal
from web.answers import json_answer, submitted
from web.auth import current, needs
from web.bodies import read_as
from web.durable import DEPTH_MAX, Here, checked, own_lease, small
from web.identity import body_hash
from web.parts import Parts
from web.submitting import submit

logger = logging.getLogger(__name__)

_DIRECTORY_OF_NONE = DirectoryId(host="-", device="0", inode="0")


class Begin(Here, kw_only=True):
    turn_id: str
    input: dict[str, Any]


class Open(Here, kw_only=True):
    turn_id: str
    message: dict[str, Any]
    audit: list[Any]


class Discard(Here, kw_only=True):
    turn_id: str


class Audit(Here, kw_only=True):
    event: dict[str, Any]


class Start(Here, kw_only=True):
    call: dict[str, Any]


class Complete(Here, kw_only=True):
    output: dict[str, Any]
    origin: str = "tool"
    denied: dict[str, Any] | None = None


def blueprint(parts: Parts) -> Blueprint:
    routes = Blueprint("durable_journal", __name__, url_prefix="/api/v1/durable-sessions")
    _turn_routes(routes, parts)
    _call_routes(routes, parts)

    @routes.get("/<text>/journal")
    @needs("read")
    def _journal(text: str) -> Response:
        with parts.database.snapshot() as reading:
            row = durable_sessions.shown(reading, id_bytes(text), owner=current().principal)
            if row is None:
                raise NotFound(f"there is no durable session {text[:64]}")
            session = find(reading, row["session_id"], current().principal)
            place = session.directory.id if session.directory else _DIRECTORY_OF_NONE
            journal = tool_journal.journal(reading, session.id, place)
        return json_answer(journal_shape(journal))

    return routes


def _turn_routes(routes: Blueprint, parts: Parts) -> None:
    @routes.post("/<text>/active-turn")
    @needs("write")
    def _begin(text: str) -> Response:
        asked = read_as(Begin, limits.REQUEST_BODY_MAX_BYTES, DEPTH_MAX)
        message = check_input(read_message(asked.input, "input"))
        command = BeginTurn(
            **holder_of(parts, text, asked), turn=uuid7("turn_id", asked.turn_id), input=payload(message)
        )
        return sent(parts, command)

    @routes.post("/<text>/tool-batch")
    @needs("write")
    def _open(text: str) -> Response:
        asked = read_as(Open, limits.REQUEST_BODY_MAX_BYTES, DEPTH_MAX)
        message = read_message(asked.message, "message")
        of_round = tool_steps.round_of(asked.turn_id, audit_events(asked.audit), message.tool_calls)
        command = OpenBatch(
            **holder_of(parts, text, asked),
            turn=uuid7("turn_id", asked.turn_id),
            message=payload(message),
            round=of_round.number,
            usage=tuple(of_round.usage.items()),
            starts_turn=of_round.starts_turn,
            received=tuple(_received(parts, call) for call in message.tool_calls),
        )
        return sent(parts, command)

    @routes.delete("/<text>/tool-batch")
    @needs("write")
    def _discard(text: str) -> Response:
        asked = small(Discard)
        turn = uuid7("turn_id", asked.turn_id)
        return submit(parts, DiscardBatch(**holder_of(parts, text, asked), turn=turn))


def _call_routes(routes: Blueprint, parts: Parts) -> None:
    @routes.post("/<text>/tool-batch/calls/<call_id>/audit")
    @needs("write")
    def _audit(text: str, call_id: str) -> Response:
        asked = read_as(Audit, limits.REQUEST_BODY_MAX_BYTES, DEPTH_MAX)
        event = read_event(asked.event)
        if not isinstance(event, ApprovalRequested | ApprovalResolved) or event.call_id != call_id:
            raise Invalid("event: approval_requested or approval_resolved of this call")
        holder = {**holder_of(parts, text, asked), "call": uuid7("call_id", call_id)}
        if isinstance(event, ApprovalResolved):
            return sent(parts, DecideApproval(**holder, is_allowed=event.is_allowed, reason=event.reason))
        asked_in = DirectoryId(
            host=event.workspace_host, device=event.workspace_device, inode=event.workspace_inode
        )
        about = ToolCall(call_id, event.tool_name, event.arguments)
        check_call(about)
        command = AskApproval(
            **holder,
            received=_received(parts, about),
            asked_in=checked(parts, asked_in),
            workspace_root=event.workspace_root,
            reason=event.reason,
        )
        return sent(parts, command)

    @routes.post("/<text>/tool-batch/calls/<call_id>/start")
    @needs("write")
    def _start(text: str, call_id: str) -> Response:
        asked = read_as(Start, limits.REQUEST_BODY_MAX_BYTES, DEPTH_MAX)
        call = read_call(asked.call)
        check_call(call)
        if call.id != call_id:
            raise Invalid("call: its id is not that of the address")
        return submit(
            parts,
            StartCall(
                **holder_of(parts, text, asked),
                call=uuid7("call_id", call_id),
                received=_received(parts, call),
            ),
        )

    @routes.post("/<text>/tool-batch/calls/<call_id>/complete")
    @needs("write")
    def _complete(text: str, call_id: str) -> Response:
        asked = read_as(Complete, limits.REQUEST_BODY_MAX_BYTES)
        output = read_output(asked.output, "complete")
        denied = None if asked.denied is None else read_event(asked.denied, "denied")
        if denied is not None and (
            not isinstance(denied, ApprovalResolved) or denied.is_allowed or denied.call_id != call_id
        ):
            raise Invalid("denied: an approval_resolved of this call that denies it")
        command = CompleteCall(
            **holder_of(parts, text, asked),
            call=uuid7("call_id", call_id),
            origin=asked.origin,
            content=output.content,
            is_error=output.is_error,
            denied=None if denied is None else denied.reason,
        )
        return sent(parts, command)


# --- what the routes share ---------------------------------------------------------------------------


def journal_shape(journal: Journal) -> dict[str, Any]:
    turn, batch = journal.turn, journal.batch
    return {
        "turn": None
        if turn is None
        else {
            "turn_id": turn.turn_id,
            "input": payload(turn.input),
            "checkpoint_count": turn.checkpoint_count,
        },
        "batch": None
        if batch is None
        else {
            "turn_id": batch.turn_id,
            "message": payload(batch.messages[-1]),
            "calls": [
                {
                    "id": each.call.id,
                    "name": each.call.name,
                    "state": each.state.value,
                    "origin": None if each.origin is None else each.origin.value,
                    "output": None
                    if each.output is None
                    else {"content": each.output.content, "is_error": each.output.is_error},
                }
                for each in batch.invocations
            ],
        },
    }


def sent(parts: Parts, command: OfHolder | object) -> Response:
    """What the command answered, and whether what is kept of it is not what was sent (`redacted`)."""
    clean = parts.gate.cleaned(command)
    answer = parts.context(current(), request.environ).submit_cleaned(command, clean)
    return submitted(
        answer if answer.get("status") == "pending" else {**answer, "redacted": clean != command}
    )


def holder_of(parts: Parts, text: str, asked: Here) -> dict[str, Any]:
    return {
        "session": id_bytes(text),
        "lease_hash": own_lease(),
        "directory": asked.directory.id(parts),
    }


def audit_events(values: list[Any]) -> list[AuditEvent]:
    if len(values) > limits.TOOL_CALLS_PER_ROUND_MAX + 8:
        raise Invalid("audit: more events than one round has")
    return [read_event(value, f"audit[{index}]") for index, value in enumerate(values)]


def _received(parts: Parts, call: ToolCall) -> bytes:
    """Tells a call from another one, and nothing else."""
    return body_hash(parts.gate.hash_key, tool_steps.received_text(call))


def uuid7(name: str, text: str) -> bytes:
    if not UUID7.fullmatch(text):
        raise Invalid(f"{name}: must be a UUIDv7 in lower case")
    return id_bytes(text)

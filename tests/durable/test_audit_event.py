"""Events of an agent loop, as its transcript keeps them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memory_core.domain import audit_event
from memory_core.domain.audit_event import (
    ApprovalResolved,
    AuditEvent,
    CallPlanned,
    Cancelled,
    ModelCompleted,
    ModelStarted,
    ToolCompleted,
    ToolStarted,
    TurnCompleted,
    TurnFailed,
    TurnStarted,
    payload,
    read_event,
    read_record,
    record,
)
from memory_core.errors import Invalid
from tests.durable.journals import allow, call, deny, fine, new_id, request

TURN = new_id()
CALL = call(path="a.py")
EVENTS: list[AuditEvent] = [
    TurnStarted(turn_id=TURN),
    ModelStarted(turn_id=TURN, round=1),
    CallPlanned(turn_id=TURN, round=1, call=CALL),
    ModelCompleted(turn_id=TURN, round=1, finish_reason="tool_calls", usage={"input_tokens": 12}),
    request(CALL),
    allow(CALL),
    deny(CALL),
    ApprovalResolved(call_id=CALL.id, is_allowed=False),
    ToolStarted(call_id=CALL.id, tool_name=CALL.name),
    ToolCompleted(call_id=CALL.id, tool_name=CALL.name, output=fine()),
    TurnCompleted(turn_id=TURN, model_rounds=2, usage={}),
    Cancelled(turn_id=TURN),
    TurnFailed(turn_id=TURN, message="the model did not answer"),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda e: e.type)
def test_an_event_comes_back_from_its_record_as_it_was(event: AuditEvent):
    assert read_record(json.loads(json.dumps(record(event, 3)))) == (3, event)


@pytest.mark.parametrize("event", EVENTS, ids=lambda e: e.type)
def test_an_event_with_a_field_more_or_less_is_refused(event: AuditEvent):
    whole = payload(event)
    with pytest.raises(Invalid, match="unknown field"):
        read_event({**whole, "extra": True})
    for name in whole:
        if name == "usage":  # not every client counts
            continue
        with pytest.raises(Invalid):
            read_event({key: value for key, value in whole.items() if key != name})


@pytest.mark.parametrize(
    "sort", ["model_progress", "text_delta", "reasoning_delta", "translation", "", "TURN_STARTED"]
)
def test_progress_and_unknown_events_are_not_kept(sort: str):
    with pytest.raises(Invalid, match="not kept"):
        read_event({"type": sort, "turn_id": TURN})


@pytest.mark.parametrize(
    ("event", "change"),
    [
        (TurnStarted(turn_id=TURN), {"turn_id": TURN.upper()}),
        (ModelStarted(turn_id=TURN, round=1), {"round": 0}),
        (ModelStarted(turn_id=TURN, round=1), {"round": 21}),
        (ModelStarted(turn_id=TURN, round=1), {"round": True}),
        (EVENTS[3], {"finish_reason": "Because I said so"}),
        (EVENTS[3], {"usage": {"input_tokens": -1}}),
        (EVENTS[3], {"usage": {"in put": 1}}),
        (EVENTS[3], {"usage": {f"count_{n}": n for n in range(17)}}),
        (allow(CALL), {"decision": {"type": "allow_always"}}),
        (allow(CALL), {"decision": {"type": "allow_once", "reason": "why not"}}),
        (ToolStarted(call_id=CALL.id, tool_name="shell"), {"tool_name": "rm -rf"}),
        (EVENTS[9], {"output": {"content": "", "is_error": False}}),
        (EVENTS[9], {"output": {"content": "x", "is_error": 0}}),
        (EVENTS[12], {"message": ""}),
    ],
)
def test_a_field_outside_its_bounds_is_refused(event: AuditEvent, change: dict[str, Any]):
    read_event(payload(event))
    with pytest.raises(Invalid):
        read_event({**payload(event), **change})


@pytest.mark.parametrize("change", [{"record": "event"}, {"version": 2}, {"ordinal": -1}, {"ordinal": 0.0}])
def test_a_record_of_another_shape_is_refused(change: dict[str, Any]):
    with pytest.raises(Invalid):
        read_record({**record(EVENTS[0], 0), **change})


def test_a_request_names_directory_tool_and_arguments():
    told = payload(request(CALL))["context"]
    assert told["arguments"] == {"path": "a.py"}
    assert set(told) == {
        *("call_id", "tool_name", "arguments", "reason"),
        *("workspace_root", "workspace_host", "workspace_device", "workspace_inode"),
    }
    assert audit_event.read_event({"type": "approval_requested", "context": told}) == request(CALL)

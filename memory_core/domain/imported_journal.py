"""The journal of a turn under way that another program kept, read as one of memoryd's own.

It has the same messages and events. What stands in a call is not repeated in the audit, because what is redacted twice
could come out as two texts; a call's keyed hash, which only a client that repeats itself needs, is left empty.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from memory_core.domain import tool_rows
from memory_core.domain.directory import DirectoryId
from memory_core.domain.json_fields import json_text
from memory_core.domain.tool_journal import Journal
from memory_core.domain.tool_rows import StoredBatch, StoredCall, StoredTurn


def read(directory: DirectoryId, told: Mapping[str, Any]) -> Journal:
    """`told`: turn_id, input, checkpoint_count, event_count, event_bytes; of an open batch message, audit (`compacted`) and calls
    ({call_id, name, arguments, state, result, origin, is_error} in their order). Raises `Corrupt` where it breaks a rule."""
    turn = StoredTurn(
        turn_id=told["turn_id"],
        input_json=json_text(told["input"]),
        checkpoint_count=told["checkpoint_count"],
        event_count=told["event_count"],
        event_bytes=told["event_bytes"],
    )
    # The input as it is written here: a batch tells it by its digest.
    turn = tool_rows.turn_row(tool_rows.read_journal(directory, turn, None).open_turn)
    return tool_rows.read_journal(directory, turn, _batch(told, turn) if told.get("message") else None)


def compacted(event: Mapping[str, Any], host: str) -> dict[str, Any]:
    """An event of an audit without what its call says, and with the host that its directory is on."""
    short, sort = dict(event), event.get("type")
    if sort == "tool_call" and isinstance(event.get("call"), Mapping):
        short["call"] = {"id": cast("Mapping[str, Any]", event["call"]).get("id"), "received": ""}
    elif sort == "approval_requested" and isinstance(event.get("context"), Mapping):
        context = dict(cast("Mapping[str, Any]", event["context"]))
        context.pop("arguments", None)
        short["context"] = {**context, "workspace_host": host}
    elif sort == "tool_completed":
        short.pop("output", None)
    return short


def _batch(told: Mapping[str, Any], turn: StoredTurn) -> StoredBatch:
    digest = hashlib.sha256(turn.input_json.encode()).hexdigest()
    first = [{"input_sha256": digest}] if turn.checkpoint_count == 0 else []
    batch = StoredBatch(
        turn_id=turn.turn_id,
        messages_json=json_text([*first, told["message"]]),
        audit_json=json_text(
            [
                {"record": "agent_event", "version": 1, "ordinal": ordinal, "event": event}
                for ordinal, event in enumerate(told["audit"])
            ]
        ),
        calls=(),
    )
    return replace(batch, calls=tuple(_call(call, ordinal) for ordinal, call in enumerate(told["calls"])))


def _call(call: Mapping[str, Any], ordinal: int) -> StoredCall:
    return StoredCall(
        call_id=call["call_id"],
        ordinal=ordinal,
        tool_name=call["name"],
        arguments_json=json_text(call["arguments"]),
        state=call["state"],
        result_json=None if call["result"] is None else json_text(call["result"]),
        result_origin=call["origin"],
        result_is_error=call["is_error"],
    )

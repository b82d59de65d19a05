"""The journal of a turn that the older program had under way, as it is sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from client.emelex import values
from client.emelex.tables import Tables
from memory_core import limits
from memory_core.domain import imported_journal
from memory_core.domain.directory import Directory
from memory_core.errors import Corrupt


def body_of(
    tables: Tables, session_id: str, directory: Directory, turns: Sequence[tuple[int, int]]
) -> dict[str, Any] | None:
    """`turns`: events and bytes of each turn of the session. None where nothing is under way. Raises `Corrupt` for a journal that breaks a
    rule, and `Invalid` for one that is longer than memoryd takes."""
    row = next(tables.rows("active_agent_turns", "session_id", session_id=session_id), None)
    batch = next(tables.rows("pending_tool_batches", "session_id", session_id=session_id), None)
    if row is None:
        if batch is not None:
            raise Corrupt("calls are under way, but no turn")
        return None
    count = values.number_of(row, "checkpoint_count")
    written = turns[len(turns) - count :] if count else ()
    if len(written) < count or (batch is not None and batch["turn_id"] != row["turn_id"]):
        raise Corrupt("the turn under way does not agree with what is written of it")
    told: dict[str, Any] = {
        "turn_id": values.id_of(row, "turn_id"),
        "input": values.json_of(row, "input_json"),
        "checkpoint_count": count,
        "event_count": sum(events for events, _ in written),
        "event_bytes": sum(size for _, size in written),
    }
    if batch is not None:
        told |= {
            "message": _message(values.json_of(batch, "messages_json"), 2 if count == 0 else 1),
            "audit": _audit(values.json_of(batch, "audit_json"), directory.host),
            "calls": _calls(tables, session_id),
        }
    values.check_fits("the turn under way", told, limits.REQUEST_BODY_MAX_BYTES)
    try:
        imported_journal.read(directory, told)
    except (KeyError, TypeError, AttributeError) as error:
        raise Corrupt("the turn under way is not what such a turn is") from error
    return told


def _message(messages: Any, count: int) -> Any:
    if not isinstance(messages, list) or len(cast("list[Any]", messages)) != count:
        raise Corrupt("the calls under way have no message of the assistant")
    return cast("list[Any]", messages)[-1]


def _audit(records: Any, host: str) -> list[dict[str, Any]]:
    if not isinstance(records, list):
        raise Corrupt("the audit of the calls under way is no list")
    found: list[dict[str, Any]] = []
    for record in cast("list[Any]", records):
        event = cast("dict[str, Any]", record).get("event") if isinstance(record, dict) else None
        if not isinstance(event, dict):
            raise Corrupt("the audit of the calls under way holds something else than events")
        found.append(imported_journal.compacted(cast("dict[str, Any]", event), host))
    return found


def _calls(tables: Tables, session_id: str) -> list[dict[str, Any]]:
    return [
        {
            "call_id": values.id_of(row, "call_id"),
            "name": values.text_of(row, "tool_name"),
            "arguments": values.json_of(row, "arguments_json"),
            "state": values.text_of(row, "state"),
            "result": None if row["result_json"] is None else values.json_of(row, "result_json"),
            "origin": row["result_origin"],
            "is_error": None if row["result_is_error"] is None else bool(row["result_is_error"]),
        }
        for row in tables.rows("pending_tool_invocations", "ordinal", session_id=session_id)
    ]

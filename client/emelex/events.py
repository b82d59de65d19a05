"""Events of one session, as every schema has them: those before turns were kept are turns of one event each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from client.emelex import values
from client.emelex.tables import Row, Tables
from memory_core import limits
from memory_core.errors import Corrupt

KINDS: Final = frozenset(
    [
        "system",
        "user_message",
        "assistant_message",
        "tool_call",
        "tool_result",
        "approval",
        "audit",
        "summary",
        "error",
    ]
)
#: What an agent, its person or its tools said or did.
SUBSTANCE: Final = frozenset(("user_message", "assistant_message", "tool_call", "tool_result"))


@dataclass(frozen=True, kw_only=True)
class Link:
    """A file that an event refers to."""

    sha256: str
    kind: str


def rows(tables: Tables, session_id: str) -> Iterator[Row]:
    """Raises `Corrupt`."""
    for row in tables.rows("session_events", "sequence", session_id=session_id):
        if row["turn_id"] is None and tables.version < 3:
            yield {**row, "turn_id": row["id"], "turn_index": 0, "turn_size": 1}
        else:
            yield row


def links(tables: Tables, session_id: str) -> dict[str, list[Link]]:
    """By event id, in their order. Raises `Corrupt`."""
    found: dict[str, list[Link]] = defaultdict(list)
    for row in tables.rows("session_assets", "event_id, ordinal", session_id=session_id):
        event = found[values.id_of(row, "event_id")]
        if values.number_of(row, "ordinal") != len(event):
            raise Corrupt(f"the assets of event {row['event_id']} have a gap")
        event.append(Link(sha256=values.digest_of(row, "asset_sha256"), kind=values.text_of(row, "kind")))
    return found


def body_of(row: Row) -> dict[str, Any]:
    """An event as it is sent, without its assets. Raises `Corrupt`, and `Invalid` for a payload that memoryd does not take."""
    kind = values.text_of(row, "kind")
    if kind not in KINDS:
        raise Corrupt(f"event {row['sequence']} is of the unknown kind {kind!r:.40}")
    payload = values.json_of(row, "payload_json")
    values.check_fits(f"the payload of event {row['sequence']}", payload, limits.EVENT_PAYLOAD_MAX_BYTES)
    return {
        "id": values.id_of(row),
        "turn_id": values.id_of(row, "turn_id"),
        "turn_index": row["turn_index"],
        "turn_size": row["turn_size"],
        "kind": kind,
        "payload": payload,
        "created_at": values.moment_of(row, "created_at"),
    }


def summary_of(row: Row) -> tuple[str, int]:
    """Of a summary, the job that wrote it and how many events it stands for. Raises `Corrupt`."""
    payload = values.json_of(row, "payload_json")
    told = payload.get("compaction") if isinstance(payload, Mapping) else None
    if not isinstance(told, Mapping):
        raise Corrupt(f"event {row['sequence']} is a summary that does not say what it stands for")
    return values.id_of(told, "job_id"), values.number_of(told, "through_sequence", at_least=1)

"""Which tables and columns a database of the older program has, by the version of its schema (`PRAGMA user_version`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

OLDEST: Final = 1
NEWEST: Final = 6

_SOURCE = "provenance_session_id source_first_sequence source_last_sequence source_sha256"
_DRAWN = f"{_SOURCE} distillation_job_id candidate_index"
_FAILURES = "failure_count retry_after last_error failed_at"
_PREFIX = "source_event_count source_first_event_id source_last_event_id source_sha256"

#: Table to the columns that came with a version; a table begins with the first version that it has here.
_CAME: Final[Mapping[str, Mapping[int, str]]] = {
    "sessions": {
        1: "id workspace model_reference title created_at updated_at",
        2: "model_snapshot",
        3: "workspace_device workspace_inode execution_token execution_lease_until",
    },
    "session_events": {
        1: "id session_id sequence kind payload_json created_at",
        3: "turn_id turn_index turn_size",
    },
    "compaction_jobs": {
        1: "id session_id through_sequence state created_at updated_at",
        2: "claim_token lease_until",
        3: f"{_PREFIX} summary_event_id",
        5: _FAILURES,
    },
    "knowledge": {
        1: "id workspace key active_version pinned created_at updated_at",
        4: "workspace_device workspace_inode legacy_identity tombstoned tombstoned_at",
    },
    "knowledge_versions": {
        1: "knowledge_id version content source_session_id created_at",
        4: f"confidence {_DRAWN}",
    },
    "knowledge_tombstones": {4: f"id knowledge_id confidence {_DRAWN} origin created_at"},
    "session_snapshots": {4: "session_id schema_version config_json created_at updated_at"},
    "assets": {4: "sha256 bytes created_at verified_at"},
    "session_assets": {4: "session_id event_id asset_sha256 kind ordinal created_at"},
    "distillation_jobs": {
        4: f"id session_id through_sequence {_PREFIX} state claim_token lease_until created_at updated_at completed_at",
        5: _FAILURES,
    },
    "distillation_results": {4: "job_id candidate_index knowledge_id knowledge_version created_at"},
    "active_agent_turns": {6: "session_id turn_id input_json checkpoint_count created_at updated_at"},
    "active_agent_turn_assets": {6: "session_id ordinal asset_sha256 kind"},
    "pending_tool_batches": {6: "session_id turn_id messages_json audit_json created_at updated_at"},
    "pending_tool_invocations": {
        6: "session_id call_id ordinal tool_name arguments_json state result_json result_origin result_is_error updated_at"
    },
    "pending_tool_assets": {6: "session_id asset_sha256"},
}
#: Of the newest version, what of a table is called otherwise in older ones.
RENAMED: Final[Mapping[str, Mapping[int, tuple[str, str]]]] = {
    "session_snapshots": {4: ("authority_json", "tools_json"), 6: ("authority_json", "authority_json")}
}


def tables(version: int) -> tuple[str, ...]:
    """The tables of that version."""
    return tuple(table for table in _CAME if columns(table, version))


def columns(table: str, version: int) -> tuple[str, ...]:
    """The columns that a table has in that version; none where it is not there yet."""
    came = _CAME[table]
    if min(came) > version:
        return ()
    names = [name for since, text in came.items() if since <= version for name in text.split()]
    pair = authority_of(table, version)
    return (*names, pair[1]) if pair else tuple(names)


def all_columns(table: str) -> tuple[str, ...]:
    """The columns of the newest version."""
    return columns(table, NEWEST)


def authority_of(table: str, version: int) -> tuple[str, str] | None:
    """Of a table with a renamed column: its name now, and its name in that version."""
    found = None
    for since, pair in RENAMED.get(table, {}).items():
        if since <= version:
            found = pair
    return found

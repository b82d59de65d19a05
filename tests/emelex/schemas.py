"""The schemas 1 to 6 of the older program, as its specification tells them."""

from __future__ import annotations

import sqlite3
from pathlib import Path

#: Table to columns with the schema that they came with; the last parts are constraints of the table.
_JOB_STATE = "state TEXT NOT NULL CHECK(state IN ('pending','running','completed'{failed}))"
_FAILURES = (
    "failure_count INTEGER NOT NULL DEFAULT 0 CHECK(failure_count >= 0)",
    "retry_after TEXT",
    "last_error TEXT CHECK(last_error IS NULL OR length(last_error) <= 4096)",
    "failed_at TEXT",
)
_SOURCE = (
    "source_event_count INTEGER NOT NULL",
    "source_first_event_id TEXT NOT NULL",
    "source_last_event_id TEXT NOT NULL",
    "source_sha256 TEXT NOT NULL CHECK(length(source_sha256) = 64)",
)
_IDENTITY = (
    "workspace_device TEXT NOT NULL CHECK(workspace_device <> '' AND workspace_device NOT GLOB '*[^0-9]*')",
    "workspace_inode TEXT NOT NULL CHECK(workspace_inode <> '' AND workspace_inode NOT GLOB '*[^0-9]*')",
)
_DRAWN = (
    "provenance_session_id TEXT",
    "source_first_sequence INTEGER",
    "source_last_sequence INTEGER",
    "source_sha256 TEXT",
    "distillation_job_id TEXT",
    "candidate_index INTEGER",
)
_TIMES = ("created_at TEXT NOT NULL", "updated_at TEXT NOT NULL")
_OF_SESSION = "session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE"


def _tables(version: int) -> dict[str, tuple[str, ...]]:
    def since(first: int, *parts: str) -> tuple[str, ...]:
        return parts if version >= first else ()

    state = _JOB_STATE.format(failed=",'failed'" if version >= 5 else "")
    claim = ("claim_token TEXT", "lease_until TEXT")
    tables = {
        "sessions": (
            "id TEXT PRIMARY KEY NOT NULL",
            "workspace TEXT NOT NULL",
            *since(3, *_IDENTITY),
            "model_reference TEXT",
            *since(2, "model_snapshot TEXT"),
            "title TEXT",
            *_TIMES,
            *since(3, "execution_token TEXT", "execution_lease_until TEXT"),
            *since(3, "CHECK((execution_token IS NULL) = (execution_lease_until IS NULL))"),
        ),
        "session_events": (
            "id TEXT PRIMARY KEY NOT NULL",
            _OF_SESSION,
            "sequence INTEGER NOT NULL CHECK(sequence > 0)",
            *since(3, "turn_id TEXT NOT NULL", "turn_index INTEGER NOT NULL", "turn_size INTEGER NOT NULL"),
            "kind TEXT NOT NULL",
            "payload_json TEXT NOT NULL CHECK(json_valid(payload_json))",
            "created_at TEXT NOT NULL",
            "UNIQUE(session_id, sequence)",
            *since(3, "UNIQUE(session_id, turn_id, turn_index)", "CHECK(turn_index < turn_size)"),
        ),
        "compaction_jobs": (
            "id TEXT PRIMARY KEY NOT NULL",
            _OF_SESSION,
            "through_sequence INTEGER NOT NULL CHECK(through_sequence > 0)",
            state,
            *since(2, *claim),
            *since(5, *_FAILURES),
            *since(3, *_SOURCE, "summary_event_id TEXT"),
            *_TIMES,
            "UNIQUE(session_id, through_sequence)",
        ),
        "knowledge": (
            "id TEXT PRIMARY KEY NOT NULL",
            "workspace TEXT NOT NULL",
            *since(4, *_IDENTITY, "legacy_identity INTEGER NOT NULL DEFAULT 0"),
            "key TEXT NOT NULL",
            "active_version INTEGER NOT NULL CHECK(active_version > 0)",
            "pinned INTEGER NOT NULL CHECK(pinned IN (0,1))",
            *since(4, "tombstoned INTEGER NOT NULL DEFAULT 0", "tombstoned_at TEXT"),
            *_TIMES,
            "UNIQUE(workspace_device, workspace_inode, key)" if version >= 4 else "UNIQUE(workspace, key)",
        ),
        "knowledge_versions": (
            "knowledge_id TEXT NOT NULL REFERENCES knowledge(id) ON DELETE CASCADE",
            "version INTEGER NOT NULL CHECK(version > 0)",
            "content TEXT NOT NULL",
            *since(4, "confidence REAL NOT NULL DEFAULT 1.0"),
            "source_session_id TEXT REFERENCES sessions(id) ON DELETE SET NULL",
            *since(4, *_DRAWN),
            "created_at TEXT NOT NULL",
            "PRIMARY KEY(knowledge_id, version)",
        ),
    }
    if version >= 4:
        tables |= _since_four(version, state, claim)
    return tables | (_since_six() if version >= 6 else {})


def _since_four(version: int, state: str, claim: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    authority = "authority_json" if version >= 6 else "tools_json"
    return {
        "knowledge_tombstones": (
            "id TEXT PRIMARY KEY NOT NULL",
            "knowledge_id TEXT NOT NULL REFERENCES knowledge(id) ON DELETE CASCADE",
            "confidence REAL NOT NULL",
            *_DRAWN,
            "origin TEXT NOT NULL CHECK(origin IN ('manual','distillation'))",
            "created_at TEXT NOT NULL",
        ),
        "session_snapshots": (
            "session_id TEXT PRIMARY KEY NOT NULL REFERENCES sessions(id) ON DELETE CASCADE",
            "schema_version INTEGER NOT NULL CHECK(schema_version > 0)",
            "config_json TEXT NOT NULL CHECK(json_valid(config_json))",
            f"{authority} TEXT NOT NULL CHECK(json_valid({authority}))",
            *_TIMES,
        ),
        "assets": (
            "sha256 TEXT PRIMARY KEY NOT NULL CHECK(length(sha256) = 64)",
            "bytes INTEGER NOT NULL CHECK(bytes >= 0 AND bytes <= 134217728)",
            "created_at TEXT NOT NULL",
            "verified_at TEXT NOT NULL",
        ),
        "session_assets": (
            _OF_SESSION,
            "event_id TEXT NOT NULL REFERENCES session_events(id) ON DELETE CASCADE",
            "asset_sha256 TEXT NOT NULL REFERENCES assets(sha256) ON DELETE RESTRICT",
            "kind TEXT NOT NULL CHECK(kind IN ('image','audio','video','other'))",
            "ordinal INTEGER NOT NULL CHECK(ordinal >= 0)",
            "created_at TEXT NOT NULL",
            "PRIMARY KEY(event_id, ordinal)",
        ),
        "distillation_jobs": (
            "id TEXT PRIMARY KEY NOT NULL",
            _OF_SESSION,
            "through_sequence INTEGER NOT NULL CHECK(through_sequence > 0)",
            *_SOURCE,
            state,
            *claim,
            *(_FAILURES if version >= 5 else ()),
            *_TIMES,
            "completed_at TEXT",
            "UNIQUE(session_id, source_sha256)",
        ),
        "distillation_results": (
            "job_id TEXT NOT NULL REFERENCES distillation_jobs(id) ON DELETE CASCADE",
            "candidate_index INTEGER NOT NULL CHECK(candidate_index >= 0)",
            "knowledge_id TEXT NOT NULL REFERENCES knowledge(id) ON DELETE CASCADE",
            "knowledge_version INTEGER NOT NULL CHECK(knowledge_version > 0)",
            "created_at TEXT NOT NULL",
            "PRIMARY KEY(job_id, candidate_index)",
        ),
    }


def _since_six() -> dict[str, tuple[str, ...]]:
    asset = "asset_sha256 TEXT NOT NULL REFERENCES assets(sha256) ON DELETE RESTRICT"
    return {
        "active_agent_turns": (
            "session_id TEXT PRIMARY KEY NOT NULL REFERENCES sessions(id) ON DELETE CASCADE",
            "turn_id TEXT NOT NULL UNIQUE",
            "input_json TEXT NOT NULL CHECK(json_valid(input_json))",
            "checkpoint_count INTEGER NOT NULL DEFAULT 0 CHECK(checkpoint_count >= 0)",
            *_TIMES,
        ),
        "active_agent_turn_assets": (
            "session_id TEXT NOT NULL REFERENCES active_agent_turns(session_id) ON DELETE CASCADE",
            "ordinal INTEGER NOT NULL",
            asset,
            "kind TEXT NOT NULL",
            "PRIMARY KEY(session_id, ordinal)",
        ),
        "pending_tool_batches": (
            "session_id TEXT PRIMARY KEY NOT NULL REFERENCES sessions(id) ON DELETE CASCADE",
            "turn_id TEXT NOT NULL UNIQUE",
            "messages_json TEXT NOT NULL CHECK(json_valid(messages_json))",
            "audit_json TEXT NOT NULL CHECK(json_valid(audit_json))",
            *_TIMES,
        ),
        "pending_tool_invocations": (
            "session_id TEXT NOT NULL REFERENCES pending_tool_batches(session_id) ON DELETE CASCADE",
            "call_id TEXT NOT NULL",
            "ordinal INTEGER NOT NULL CHECK(ordinal >= 0)",
            "tool_name TEXT NOT NULL",
            "arguments_json TEXT NOT NULL CHECK(json_valid(arguments_json))",
            "state TEXT NOT NULL CHECK(state IN ('planned','started','completed'))",
            "result_json TEXT",
            "result_origin TEXT",
            "result_is_error INTEGER",
            "updated_at TEXT NOT NULL",
            "PRIMARY KEY(session_id, call_id)",
            "UNIQUE(session_id, ordinal)",
        ),
        "pending_tool_assets": (
            "session_id TEXT NOT NULL REFERENCES pending_tool_batches(session_id) ON DELETE CASCADE",
            asset,
            "PRIMARY KEY(session_id, asset_sha256)",
        ),
    }


def create(path: Path, version: int) -> sqlite3.Connection:
    """An empty database of that schema, in WAL mode as the program keeps it."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA foreign_keys = ON")
    for table, parts in _tables(version).items():
        connection.execute(f"CREATE TABLE {table} ({', '.join(parts)}) STRICT")
    connection.execute(f"PRAGMA user_version = {version}")
    return connection

"""Durable sessions: their exact events, snapshots, the journal of a turn under way, assets, compactions and distillations.

Each of these rows belongs to a session, and project and owner are the session's: they are stored once.
"""

from __future__ import annotations

from sqlalchemy import (
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from memory_core import limits
from memory_core.store.columns import at
from memory_core.store.tables import metadata

_ASSET_KINDS = "('image','audio','video','other')"


def _session(*, primary_key: bool = False) -> Column[bytes]:
    return Column(
        "session_id",
        LargeBinary(16),
        ForeignKey("durable_sessions.session_id", ondelete="CASCADE"),
        primary_key=primary_key,
        nullable=False,
    )


def _asset() -> Column[bytes]:
    return Column(
        "asset_sha256", LargeBinary(32), ForeignKey("assets.sha256", ondelete="RESTRICT"), nullable=False
    )


def _asset_kind() -> Column[str]:
    return Column("kind", Text, CheckConstraint(f"kind IN {_ASSET_KINDS}", name="kind"), nullable=False)


def _json(name: str, max_bytes: int) -> CheckConstraint:
    """The column holds a JSON text of at most so many bytes."""
    return CheckConstraint(
        f"typeof({name}) = 'text' AND json_valid({name}) AND length(CAST({name} AS BLOB)) <= {max_bytes}",
        name=name,
    )


def _optional_json(name: str, max_bytes: int) -> CheckConstraint:
    return CheckConstraint(
        f"{name} IS NULL OR (typeof({name}) = 'text' AND json_valid({name})"
        f" AND length(CAST({name} AS BLOB)) <= {max_bytes})",
        name=name,
    )


def _source() -> tuple[Column[int], Column[bytes], Column[bytes], Column[bytes]]:
    """What a job was made of: the events 1 to `event_count`, and the transcript's digest at the last of them."""
    return (
        Column("event_count", Integer, nullable=False),
        Column("first_event_id", LargeBinary(16), nullable=False),
        Column("last_event_id", LargeBinary(16), nullable=False),
        Column("sha256", LargeBinary(32), nullable=False),
    )


def _source_checks() -> tuple[CheckConstraint, ...]:
    return (
        CheckConstraint("through_sequence > 0 AND event_count = through_sequence", name="through"),
        CheckConstraint("length(sha256) = 32", name="source"),
    )


#: What a session has besides when its exact events are kept: whose directory it works in, who works on it now, and how far it is.
durable_sessions = Table(
    "durable_sessions",
    metadata,
    Column("session_id", LargeBinary(16), ForeignKey("sessions.id", ondelete="CASCADE"), primary_key=True),
    #: `client`: written by the program that works; `hooks`: folded from what hooks told.
    Column("origin", Text, nullable=False),
    #: Identity of the directory: three texts that are compared, and a path that describes it.
    Column("host", Text, nullable=True),
    Column("device", Text, nullable=True),
    Column("inode", Text, nullable=True),
    Column("path", Text, nullable=True),
    Column("model_reference", Text, nullable=True),
    #: SHA-256 of the lease token.
    Column("lease_hash", LargeBinary(32), nullable=True),
    at("lease_until", nullable=True),
    #: Whether the holder of this lease has read what it appends to.
    Column("has_replayed", Integer, nullable=False),
    #: Events past it are a turn on its way, which nobody sees.
    Column("last_sequence", Integer, nullable=False),
    #: Of the transcript up to `last_sequence`.
    Column("digest", LargeBinary(32), nullable=False),
    at("closed_at", nullable=True),
    #: From then on nobody sees it; its rows go in slices.
    at("deleted_at", nullable=True),
    at("updated_at"),
    #: Up to which event what was said is kept as turns too, by which it is found; of hooks' sessions, which are made of turns, 0.
    Column("turns_through", Integer, nullable=False, server_default=text("0")),
    CheckConstraint("origin IN ('client','hooks')", name="origin"),
    CheckConstraint(
        "(host IS NULL) = (device IS NULL) AND (host IS NULL) = (inode IS NULL) AND (host IS NULL) = (path IS NULL)"
        " AND (origin = 'hooks' OR host IS NOT NULL)",
        name="directory",
    ),
    CheckConstraint(
        "device IS NULL OR (device <> '' AND inode <> '' AND device NOT GLOB '*[^0-9]*' AND inode NOT GLOB '*[^0-9]*')",
        name="numbers",
    ),
    CheckConstraint(
        "(lease_hash IS NULL) = (lease_until IS NULL) AND (lease_hash IS NULL OR length(lease_hash) = 32)",
        name="lease",
    ),
    CheckConstraint("has_replayed IN (0, 1)", name="has_replayed"),
    CheckConstraint("typeof(last_sequence) = 'integer' AND last_sequence >= 0", name="last_sequence"),
    CheckConstraint("length(digest) = 32", name="digest"),
    CheckConstraint(
        f"model_reference IS NULL OR length(CAST(model_reference AS BLOB)) <= {limits.MODEL_REFERENCE_MAX_BYTES}",
        name="model_reference",
    ),
)
_d = durable_sessions.c
Index("ix_durable_sessions_directory", _d.host, _d.device, _d.inode, _d.updated_at)
Index(None, _d.updated_at)
Index("ix_durable_sessions_leases", _d.lease_until, sqlite_where=_d.lease_until.is_not(None))
Index(
    "ix_durable_sessions_turns",
    _d.session_id,
    sqlite_where=text("origin = 'client' AND turns_through < last_sequence AND deleted_at IS NULL"),
)
Index("ix_durable_sessions_deleted", _d.deleted_at, sqlite_where=_d.deleted_at.is_not(None))

#: The exact transcript, in groups (turns) that were written together; never edited.
session_events = Table(
    "session_events",
    metadata,
    Column("id", LargeBinary(16), primary_key=True),
    _session(),
    Column("sequence", Integer, nullable=False),
    Column("turn_id", LargeBinary(16), nullable=False),
    Column("turn_index", Integer, nullable=False),
    Column("turn_size", Integer, nullable=False),
    Column("kind", Text, nullable=False),
    Column("payload_json", Text, nullable=False),
    #: Of the transcript up to this event: each covers all before it.
    Column("digest", LargeBinary(32), nullable=False),
    #: Who wrote it, and with what authority.
    Column("principal", Text, nullable=False),
    Column("token_scope", Text, nullable=False),
    at("created_at"),
    UniqueConstraint("session_id", "sequence"),
    UniqueConstraint("session_id", "turn_id", "turn_index", name="uq_session_events_turn"),
    CheckConstraint("typeof(sequence) = 'integer' AND sequence > 0", name="sequence"),
    CheckConstraint(
        f"turn_index >= 0 AND turn_index < turn_size AND turn_size <= {limits.TURN_EVENTS_MAX}", name="turn"
    ),
    CheckConstraint(
        "kind IN ('system','user_message','assistant_message','tool_call','tool_result','approval','audit',"
        "'summary','error')",
        name="kind",
    ),
    _json("payload_json", limits.EVENT_PAYLOAD_MAX_BYTES),
    CheckConstraint("length(digest) = 32", name="digest"),
)

#: With what configuration and authority a session works. One revision, which never changes; of a session that hooks tell of, one for
#: each change that was seen.
session_snapshots = Table(
    "session_snapshots",
    metadata,
    _session(),
    Column("revision", Integer, nullable=False),
    Column("schema_version", Integer, nullable=False),
    Column("config_json", Text, nullable=False),
    Column("authority_json", Text, nullable=False),
    at("created_at"),
    #: The path of the directory may change while it stays the same directory.
    at("updated_at"),
    PrimaryKeyConstraint("session_id", "revision"),
    CheckConstraint("revision > 0 AND schema_version > 0", name="numbers"),
    _json("config_json", limits.SNAPSHOT_PART_MAX_BYTES),
    _json("authority_json", limits.SNAPSHOT_PART_MAX_BYTES),
)

# --- a turn under way ----------------------------------------------------------------------------

#: The turn that an agent works on: written before its model is asked, gone when the turn has ended.
active_turns = Table(
    "active_turns",
    metadata,
    _session(primary_key=True),
    #: The agent's turn; each of its checkpoints is a turn of the transcript.
    Column("turn_id", LargeBinary(16), nullable=False, unique=True),
    Column("input_json", Text, nullable=False),
    Column("checkpoint_count", Integer, nullable=False),
    #: What its checkpoints wrote into the transcript so far.
    Column("event_count", Integer, nullable=False),
    Column("event_bytes", Integer, nullable=False),
    at("created_at"),
    at("updated_at"),
    _json("input_json", limits.TURN_INPUT_MAX_BYTES),
    CheckConstraint("checkpoint_count >= 0 AND event_count >= 0 AND event_bytes >= 0", name="counts"),
)

active_turn_assets = Table(
    "active_turn_assets",
    metadata,
    Column(
        "session_id",
        LargeBinary(16),
        ForeignKey("active_turns.session_id", ondelete="CASCADE"),
        nullable=False,
    ),
    Column("ordinal", Integer, nullable=False),
    _asset(),
    _asset_kind(),
    PrimaryKeyConstraint("session_id", "ordinal"),
    CheckConstraint("ordinal >= 0", name="ordinal"),
    sqlite_with_rowid=False,
)
Index(None, active_turn_assets.c.asset_sha256)

#: The tool calls of one model round, from the plan to the checkpoint that writes them into the transcript.
tool_batches = Table(
    "tool_batches",
    metadata,
    _session(primary_key=True),
    Column("turn_id", LargeBinary(16), nullable=False, unique=True),
    Column("messages_json", Text, nullable=False),
    Column("audit_json", Text, nullable=False),
    at("created_at"),
    at("updated_at"),
    _json("messages_json", limits.TOOL_BATCH_PART_MAX_BYTES),
    _json("audit_json", limits.TOOL_BATCH_PART_MAX_BYTES),
)

tool_invocations = Table(
    "tool_invocations",
    metadata,
    Column(
        "session_id",
        LargeBinary(16),
        ForeignKey("tool_batches.session_id", ondelete="CASCADE"),
        nullable=False,
    ),
    Column("call_id", Text, nullable=False),
    Column("ordinal", Integer, nullable=False),
    Column("tool_name", Text, nullable=False),
    Column("arguments_json", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("result_json", Text, nullable=True),
    #: `tool`: what it said; `uncertain`: it may have had its effect; `not_executed`; `unobserved`: nobody told how it ended.
    Column("result_origin", Text, nullable=True),
    Column("result_is_error", Integer, nullable=True),
    at("updated_at"),
    PrimaryKeyConstraint("session_id", "call_id"),
    UniqueConstraint("session_id", "ordinal"),
    CheckConstraint("ordinal >= 0", name="ordinal"),
    CheckConstraint(
        f"length(CAST(tool_name AS BLOB)) BETWEEN 1 AND {limits.STORED_TOOL_NAME_MAX_BYTES}", name="tool_name"
    ),
    CheckConstraint("state IN ('planned','started','completed')", name="state"),
    CheckConstraint(
        "result_origin IS NULL OR result_origin IN ('tool','uncertain','not_executed','unobserved')",
        name="result_origin",
    ),
    CheckConstraint("result_is_error IS NULL OR result_is_error IN (0, 1)", name="result_is_error"),
    CheckConstraint(
        "(state = 'completed') = (result_json IS NOT NULL) AND (state = 'completed') = (result_origin IS NOT NULL)"
        " AND (state = 'completed') = (result_is_error IS NOT NULL)",
        name="result",
    ),
    _json("arguments_json", limits.TOOL_CALL_PART_MAX_BYTES),
    _optional_json("result_json", limits.TOOL_CALL_PART_MAX_BYTES),
)

tool_batch_assets = Table(
    "tool_batch_assets",
    metadata,
    Column(
        "session_id",
        LargeBinary(16),
        ForeignKey("tool_batches.session_id", ondelete="CASCADE"),
        nullable=False,
    ),
    _asset(),
    PrimaryKeyConstraint("session_id", "asset_sha256"),
    sqlite_with_rowid=False,
)
Index(None, tool_batch_assets.c.asset_sha256)

# --- assets --------------------------------------------------------------------------------------

#: Files that events refer to, each stored once under its digest.
assets = Table(
    "assets",
    metadata,
    Column("sha256", LargeBinary(32), primary_key=True),
    Column("bytes", Integer, nullable=False),
    at("created_at"),
    #: When the file was last read whole and had this digest.
    at("verified_at"),
    #: Since when nothing has referred to it, as far as somebody looked.
    at("unreferenced_at", nullable=True),
    CheckConstraint("length(sha256) = 32", name="sha256"),
    CheckConstraint(f"bytes >= 0 AND bytes <= {limits.ASSET_MAX_BYTES}", name="bytes"),
)
Index(None, assets.c.created_at)

session_assets = Table(
    "session_assets",
    metadata,
    _session(),
    Column("event_id", LargeBinary(16), ForeignKey("session_events.id", ondelete="CASCADE"), nullable=False),
    Column("ordinal", Integer, nullable=False),
    _asset(),
    _asset_kind(),
    at("created_at"),
    PrimaryKeyConstraint("event_id", "ordinal"),
    CheckConstraint(f"ordinal >= 0 AND ordinal < {limits.EVENT_ASSETS_MAX}", name="ordinal"),
    sqlite_with_rowid=False,
)
Index(None, session_assets.c.asset_sha256)
Index(None, session_assets.c.session_id)

# --- what jobs make of a session -----------------------------------------------------------------

#: A job that sums up the beginning of a session, and the event that its summary became. States, leases and failures are the job's.
compactions = Table(
    "compactions",
    metadata,
    Column("job_id", LargeBinary(16), ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True),
    _session(),
    Column("through_sequence", Integer, nullable=False),
    *_source(),
    Column("summary_event_id", LargeBinary(16), nullable=True, unique=True),
    #: Who summed up.
    Column("made_by", Text, nullable=True),
    at("created_at"),
    at("completed_at", nullable=True),
    UniqueConstraint("session_id", "through_sequence"),
    *_source_checks(),
    CheckConstraint("made_by IS NULL OR made_by IN ('model','rules')", name="made_by"),
    CheckConstraint(
        "(summary_event_id IS NULL) = (made_by IS NULL) AND (summary_event_id IS NULL) = (completed_at IS NULL)",
        name="completed",
    ),
)

#: A job that draws knowledge from a whole session.
distillations = Table(
    "distillations",
    metadata,
    Column("job_id", LargeBinary(16), ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True),
    _session(),
    Column("through_sequence", Integer, nullable=False),
    *_source(),
    Column("made_by", Text, nullable=True),
    at("created_at"),
    at("completed_at", nullable=True),
    UniqueConstraint("session_id", "sha256"),
    *_source_checks(),
    CheckConstraint("made_by IS NULL OR made_by IN ('model','rules')", name="made_by"),
    CheckConstraint("(made_by IS NULL) = (completed_at IS NULL)", name="completed"),
)

#: What became of each candidate.
distillation_results = Table(
    "distillation_results",
    metadata,
    Column("job_id", LargeBinary(16), ForeignKey("distillations.job_id", ondelete="CASCADE"), nullable=False),
    Column("candidate_index", Integer, nullable=False),
    #: NULL: nothing came of it.
    Column("knowledge_id", LargeBinary(16), nullable=True),
    Column("version", Integer, nullable=True),
    Column("action", Text, nullable=False),
    at("created_at"),
    PrimaryKeyConstraint("job_id", "candidate_index"),
    CheckConstraint("candidate_index >= 0", name="candidate_index"),
    CheckConstraint("action IN ('upserted','tombstoned','skipped')", name="action"),
    CheckConstraint(
        "(knowledge_id IS NULL) = (version IS NULL) AND (action = 'skipped' OR knowledge_id IS NOT NULL)"
        " AND (version IS NULL OR version > 0)",
        name="knowledge",
    ),
    sqlite_with_rowid=False,
)
Index(None, distillation_results.c.knowledge_id)

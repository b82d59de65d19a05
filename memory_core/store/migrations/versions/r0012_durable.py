"""Durable sessions: exact events, snapshots, the journal of a turn under way, assets, compactions and distillations."""

from __future__ import annotations

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    connection = op.get_bind()
    for statement in _DDL.split(";\n\n"):
        connection.exec_driver_sql(statement)
    # Full text came in 0002, which filled it with nothing: what a database held by then was never found.
    if connection.exec_driver_sql(_UNINDEXED).fetchone():
        connection.exec_driver_sql("INSERT INTO observations_fts(observations_fts) VALUES ('rebuild')")
    connection.exec_driver_sql(_INDEX_PAGES)


_UNINDEXED = """
SELECT 1 FROM observations WHERE seq NOT IN (SELECT id FROM observations_fts_docsize) LIMIT 1
"""
_INDEX_PAGES = """
INSERT INTO pages_fts(rowid, title, body, path_search, scope)
SELECT pages.number, v.title, substr(v.content, v.body_start + 1),
    replace(replace(replace(replace(pages.path, '/', ' '), '.', ' '), '-', ' '), '_', ' '), 'p' || projects.number
FROM pages JOIN page_versions AS v ON v.id = pages.version_id JOIN projects ON projects.id = pages.project_id
WHERE pages.tombstoned_at IS NULL AND pages.number NOT IN (SELECT id FROM pages_fts_docsize)
"""


_DDL = """
CREATE TABLE assets (
    sha256 BLOB NOT NULL,
    bytes INTEGER NOT NULL,
    created_at BIGINT NOT NULL,
    verified_at BIGINT NOT NULL,
    unreferenced_at BIGINT,
    CONSTRAINT pk_assets PRIMARY KEY (sha256),
    CONSTRAINT ck_assets_sha256 CHECK (length(sha256) = 32),
    CONSTRAINT ck_assets_bytes CHECK (bytes >= 0 AND bytes <= 134217728)
);

CREATE INDEX ix_assets_created_at ON assets (created_at);

CREATE TABLE durable_sessions (
    session_id BLOB NOT NULL,
    origin TEXT NOT NULL,
    host TEXT,
    device TEXT,
    inode TEXT,
    path TEXT,
    model_reference TEXT,
    lease_hash BLOB,
    lease_until BIGINT,
    has_replayed INTEGER NOT NULL,
    last_sequence INTEGER NOT NULL,
    digest BLOB NOT NULL,
    closed_at BIGINT,
    deleted_at BIGINT,
    updated_at BIGINT NOT NULL,
    CONSTRAINT pk_durable_sessions PRIMARY KEY (session_id),
    CONSTRAINT ck_durable_sessions_origin CHECK (origin IN ('client','hooks')),
    CONSTRAINT ck_durable_sessions_directory CHECK ((host IS NULL) = (device IS NULL) AND (host IS NULL) = (inode IS NULL) AND (host IS NULL) = (path IS NULL) AND (origin = 'hooks' OR host IS NOT NULL)),
    CONSTRAINT ck_durable_sessions_numbers CHECK (device IS NULL OR (device <> '' AND inode <> '' AND device NOT GLOB '*[^0-9]*' AND inode NOT GLOB '*[^0-9]*')),
    CONSTRAINT ck_durable_sessions_lease CHECK ((lease_hash IS NULL) = (lease_until IS NULL) AND (lease_hash IS NULL OR length(lease_hash) = 32)),
    CONSTRAINT ck_durable_sessions_has_replayed CHECK (has_replayed IN (0, 1)),
    CONSTRAINT ck_durable_sessions_last_sequence CHECK (typeof(last_sequence) = 'integer' AND last_sequence >= 0),
    CONSTRAINT ck_durable_sessions_digest CHECK (length(digest) = 32),
    CONSTRAINT ck_durable_sessions_model_reference CHECK (model_reference IS NULL OR length(CAST(model_reference AS BLOB)) <= 512),
    CONSTRAINT fk_durable_sessions_session_id FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE
);

CREATE INDEX ix_durable_sessions_deleted ON durable_sessions (deleted_at) WHERE deleted_at IS NOT NULL;

CREATE INDEX ix_durable_sessions_directory ON durable_sessions (host, device, inode, updated_at);

CREATE INDEX ix_durable_sessions_leases ON durable_sessions (lease_until) WHERE lease_until IS NOT NULL;

CREATE INDEX ix_durable_sessions_updated_at ON durable_sessions (updated_at);

CREATE TABLE session_events (
    id BLOB NOT NULL,
    session_id BLOB NOT NULL,
    sequence INTEGER NOT NULL,
    turn_id BLOB NOT NULL,
    turn_index INTEGER NOT NULL,
    turn_size INTEGER NOT NULL,
    kind TEXT NOT NULL,
    payload_json TEXT NOT NULL,
    digest BLOB NOT NULL,
    principal TEXT NOT NULL,
    token_scope TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    CONSTRAINT pk_session_events PRIMARY KEY (id),
    CONSTRAINT uq_session_events_session_id_sequence UNIQUE (session_id, sequence),
    CONSTRAINT uq_session_events_turn UNIQUE (session_id, turn_id, turn_index),
    CONSTRAINT ck_session_events_sequence CHECK (typeof(sequence) = 'integer' AND sequence > 0),
    CONSTRAINT ck_session_events_turn CHECK (turn_index >= 0 AND turn_index < turn_size AND turn_size <= 4096),
    CONSTRAINT ck_session_events_kind CHECK (kind IN ('system','user_message','assistant_message','tool_call','tool_result','approval','audit','summary','error')),
    CONSTRAINT ck_session_events_payload_json CHECK (typeof(payload_json) = 'text' AND json_valid(payload_json) AND length(CAST(payload_json AS BLOB)) <= 4194304),
    CONSTRAINT ck_session_events_digest CHECK (length(digest) = 32),
    CONSTRAINT fk_session_events_session_id FOREIGN KEY(session_id) REFERENCES durable_sessions (session_id) ON DELETE CASCADE
);

CREATE TABLE session_snapshots (
    session_id BLOB NOT NULL,
    revision INTEGER NOT NULL,
    schema_version INTEGER NOT NULL,
    config_json TEXT NOT NULL,
    authority_json TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    CONSTRAINT pk_session_snapshots PRIMARY KEY (session_id, revision),
    CONSTRAINT ck_session_snapshots_numbers CHECK (revision > 0 AND schema_version > 0),
    CONSTRAINT ck_session_snapshots_config_json CHECK (typeof(config_json) = 'text' AND json_valid(config_json) AND length(CAST(config_json AS BLOB)) <= 2097152),
    CONSTRAINT ck_session_snapshots_authority_json CHECK (typeof(authority_json) = 'text' AND json_valid(authority_json) AND length(CAST(authority_json AS BLOB)) <= 2097152),
    CONSTRAINT fk_session_snapshots_session_id FOREIGN KEY(session_id) REFERENCES durable_sessions (session_id) ON DELETE CASCADE
);

CREATE TABLE active_turns (
    session_id BLOB NOT NULL,
    turn_id BLOB NOT NULL,
    input_json TEXT NOT NULL,
    checkpoint_count INTEGER NOT NULL,
    event_count INTEGER NOT NULL,
    event_bytes INTEGER NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    CONSTRAINT pk_active_turns PRIMARY KEY (session_id),
    CONSTRAINT ck_active_turns_input_json CHECK (typeof(input_json) = 'text' AND json_valid(input_json) AND length(CAST(input_json AS BLOB)) <= 2097152),
    CONSTRAINT ck_active_turns_counts CHECK (checkpoint_count >= 0 AND event_count >= 0 AND event_bytes >= 0),
    CONSTRAINT fk_active_turns_session_id FOREIGN KEY(session_id) REFERENCES durable_sessions (session_id) ON DELETE CASCADE,
    CONSTRAINT uq_active_turns_turn_id UNIQUE (turn_id)
);

CREATE TABLE active_turn_assets (
    session_id BLOB NOT NULL,
    ordinal INTEGER NOT NULL,
    asset_sha256 BLOB NOT NULL,
    kind TEXT NOT NULL CONSTRAINT ck_active_turn_assets_kind CHECK (kind IN ('image','audio','video','other')),
    CONSTRAINT pk_active_turn_assets PRIMARY KEY (session_id, ordinal),
    CONSTRAINT ck_active_turn_assets_ordinal CHECK (ordinal >= 0),
    CONSTRAINT fk_active_turn_assets_session_id FOREIGN KEY(session_id) REFERENCES active_turns (session_id) ON DELETE CASCADE,
    CONSTRAINT fk_active_turn_assets_asset_sha256 FOREIGN KEY(asset_sha256) REFERENCES assets (sha256) ON DELETE RESTRICT
)
 WITHOUT ROWID;

CREATE INDEX ix_active_turn_assets_asset_sha256 ON active_turn_assets (asset_sha256);

CREATE TABLE tool_batches (
    session_id BLOB NOT NULL,
    turn_id BLOB NOT NULL,
    messages_json TEXT NOT NULL,
    audit_json TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    CONSTRAINT pk_tool_batches PRIMARY KEY (session_id),
    CONSTRAINT ck_tool_batches_messages_json CHECK (typeof(messages_json) = 'text' AND json_valid(messages_json) AND length(CAST(messages_json AS BLOB)) <= 15728640),
    CONSTRAINT ck_tool_batches_audit_json CHECK (typeof(audit_json) = 'text' AND json_valid(audit_json) AND length(CAST(audit_json AS BLOB)) <= 15728640),
    CONSTRAINT fk_tool_batches_session_id FOREIGN KEY(session_id) REFERENCES durable_sessions (session_id) ON DELETE CASCADE,
    CONSTRAINT uq_tool_batches_turn_id UNIQUE (turn_id)
);

CREATE TABLE tool_invocations (
    session_id BLOB NOT NULL,
    call_id TEXT NOT NULL,
    ordinal INTEGER NOT NULL,
    tool_name TEXT NOT NULL,
    arguments_json TEXT NOT NULL,
    state TEXT NOT NULL,
    result_json TEXT,
    result_origin TEXT,
    result_is_error INTEGER,
    updated_at BIGINT NOT NULL,
    CONSTRAINT pk_tool_invocations PRIMARY KEY (session_id, call_id),
    CONSTRAINT uq_tool_invocations_session_id_ordinal UNIQUE (session_id, ordinal),
    CONSTRAINT ck_tool_invocations_ordinal CHECK (ordinal >= 0),
    CONSTRAINT ck_tool_invocations_tool_name CHECK (length(CAST(tool_name AS BLOB)) BETWEEN 1 AND 256),
    CONSTRAINT ck_tool_invocations_state CHECK (state IN ('planned','started','completed')),
    CONSTRAINT ck_tool_invocations_result_origin CHECK (result_origin IS NULL OR result_origin IN ('tool','uncertain','not_executed','unobserved')),
    CONSTRAINT ck_tool_invocations_result_is_error CHECK (result_is_error IS NULL OR result_is_error IN (0, 1)),
    CONSTRAINT ck_tool_invocations_result CHECK ((state = 'completed') = (result_json IS NOT NULL) AND (state = 'completed') = (result_origin IS NOT NULL) AND (state = 'completed') = (result_is_error IS NOT NULL)),
    CONSTRAINT ck_tool_invocations_arguments_json CHECK (typeof(arguments_json) = 'text' AND json_valid(arguments_json) AND length(CAST(arguments_json AS BLOB)) <= 4194304),
    CONSTRAINT ck_tool_invocations_result_json CHECK (result_json IS NULL OR (typeof(result_json) = 'text' AND json_valid(result_json) AND length(CAST(result_json AS BLOB)) <= 4194304)),
    CONSTRAINT fk_tool_invocations_session_id FOREIGN KEY(session_id) REFERENCES tool_batches (session_id) ON DELETE CASCADE
);

CREATE TABLE tool_batch_assets (
    session_id BLOB NOT NULL,
    asset_sha256 BLOB NOT NULL,
    CONSTRAINT pk_tool_batch_assets PRIMARY KEY (session_id, asset_sha256),
    CONSTRAINT fk_tool_batch_assets_session_id FOREIGN KEY(session_id) REFERENCES tool_batches (session_id) ON DELETE CASCADE,
    CONSTRAINT fk_tool_batch_assets_asset_sha256 FOREIGN KEY(asset_sha256) REFERENCES assets (sha256) ON DELETE RESTRICT
)
 WITHOUT ROWID;

CREATE INDEX ix_tool_batch_assets_asset_sha256 ON tool_batch_assets (asset_sha256);

CREATE TABLE session_assets (
    session_id BLOB NOT NULL,
    event_id BLOB NOT NULL,
    ordinal INTEGER NOT NULL,
    asset_sha256 BLOB NOT NULL,
    kind TEXT NOT NULL CONSTRAINT ck_session_assets_kind CHECK (kind IN ('image','audio','video','other')),
    created_at BIGINT NOT NULL,
    CONSTRAINT pk_session_assets PRIMARY KEY (event_id, ordinal),
    CONSTRAINT ck_session_assets_ordinal CHECK (ordinal >= 0 AND ordinal < 1024),
    CONSTRAINT fk_session_assets_session_id FOREIGN KEY(session_id) REFERENCES durable_sessions (session_id) ON DELETE CASCADE,
    CONSTRAINT fk_session_assets_event_id FOREIGN KEY(event_id) REFERENCES session_events (id) ON DELETE CASCADE,
    CONSTRAINT fk_session_assets_asset_sha256 FOREIGN KEY(asset_sha256) REFERENCES assets (sha256) ON DELETE RESTRICT
)
 WITHOUT ROWID;

CREATE INDEX ix_session_assets_asset_sha256 ON session_assets (asset_sha256);

CREATE INDEX ix_session_assets_session_id ON session_assets (session_id);

CREATE TABLE compactions (
    job_id BLOB NOT NULL,
    session_id BLOB NOT NULL,
    through_sequence INTEGER NOT NULL,
    event_count INTEGER NOT NULL,
    first_event_id BLOB NOT NULL,
    last_event_id BLOB NOT NULL,
    sha256 BLOB NOT NULL,
    summary_event_id BLOB,
    made_by TEXT,
    created_at BIGINT NOT NULL,
    completed_at BIGINT,
    CONSTRAINT pk_compactions PRIMARY KEY (job_id),
    CONSTRAINT uq_compactions_session_id_through_sequence UNIQUE (session_id, through_sequence),
    CONSTRAINT ck_compactions_through CHECK (through_sequence > 0 AND event_count = through_sequence),
    CONSTRAINT ck_compactions_source CHECK (length(sha256) = 32),
    CONSTRAINT ck_compactions_made_by CHECK (made_by IS NULL OR made_by IN ('model','rules')),
    CONSTRAINT ck_compactions_completed CHECK ((summary_event_id IS NULL) = (made_by IS NULL) AND (summary_event_id IS NULL) = (completed_at IS NULL)),
    CONSTRAINT fk_compactions_job_id FOREIGN KEY(job_id) REFERENCES jobs (id) ON DELETE CASCADE,
    CONSTRAINT fk_compactions_session_id FOREIGN KEY(session_id) REFERENCES durable_sessions (session_id) ON DELETE CASCADE,
    CONSTRAINT uq_compactions_summary_event_id UNIQUE (summary_event_id)
);

CREATE TABLE distillations (
    job_id BLOB NOT NULL,
    session_id BLOB NOT NULL,
    through_sequence INTEGER NOT NULL,
    event_count INTEGER NOT NULL,
    first_event_id BLOB NOT NULL,
    last_event_id BLOB NOT NULL,
    sha256 BLOB NOT NULL,
    made_by TEXT,
    created_at BIGINT NOT NULL,
    completed_at BIGINT,
    CONSTRAINT pk_distillations PRIMARY KEY (job_id),
    CONSTRAINT uq_distillations_session_id_sha256 UNIQUE (session_id, sha256),
    CONSTRAINT ck_distillations_through CHECK (through_sequence > 0 AND event_count = through_sequence),
    CONSTRAINT ck_distillations_source CHECK (length(sha256) = 32),
    CONSTRAINT ck_distillations_made_by CHECK (made_by IS NULL OR made_by IN ('model','rules')),
    CONSTRAINT ck_distillations_completed CHECK ((made_by IS NULL) = (completed_at IS NULL)),
    CONSTRAINT fk_distillations_job_id FOREIGN KEY(job_id) REFERENCES jobs (id) ON DELETE CASCADE,
    CONSTRAINT fk_distillations_session_id FOREIGN KEY(session_id) REFERENCES durable_sessions (session_id) ON DELETE CASCADE
);

CREATE TABLE distillation_results (
    job_id BLOB NOT NULL,
    candidate_index INTEGER NOT NULL,
    knowledge_id BLOB,
    version INTEGER,
    action TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    CONSTRAINT pk_distillation_results PRIMARY KEY (job_id, candidate_index),
    CONSTRAINT ck_distillation_results_candidate_index CHECK (candidate_index >= 0),
    CONSTRAINT ck_distillation_results_action CHECK (action IN ('upserted','tombstoned','skipped')),
    CONSTRAINT ck_distillation_results_knowledge CHECK ((knowledge_id IS NULL) = (version IS NULL) AND (action = 'skipped' OR knowledge_id IS NOT NULL) AND (version IS NULL OR version > 0)),
    CONSTRAINT fk_distillation_results_job_id FOREIGN KEY(job_id) REFERENCES distillations (job_id) ON DELETE CASCADE
)
 WITHOUT ROWID;

CREATE INDEX ix_distillation_results_knowledge_id ON distillation_results (knowledge_id)
"""

"""The first tables."""

from __future__ import annotations

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    for statement in _DDL.split(";\n\n"):
        op.get_bind().exec_driver_sql(statement)


_DDL = """
CREATE TABLE install (
    only INTEGER NOT NULL CONSTRAINT ck_install_one_row CHECK (only = 1),
    id BLOB NOT NULL,
    epoch INTEGER NOT NULL,
    machine TEXT NOT NULL,
    device INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    created_at BIGINT NOT NULL,
    CONSTRAINT pk_install PRIMARY KEY (only)
);

CREATE TABLE principals (
    name TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    CONSTRAINT pk_principals PRIMARY KEY (name)
);

CREATE TABLE workspaces (
    id BLOB NOT NULL,
    name TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    CONSTRAINT pk_workspaces PRIMARY KEY (id),
    CONSTRAINT uq_workspaces_name UNIQUE (name)
);

CREATE TABLE command_ids (
    principal TEXT NOT NULL,
    id BLOB NOT NULL,
    body_hash BLOB NOT NULL,
    status TEXT NOT NULL CONSTRAINT ck_command_ids_status CHECK (status IN ('committed','refused','dead','parked')),
    result TEXT,
    is_foreign INTEGER NOT NULL,
    recorded_at BIGINT NOT NULL,
    CONSTRAINT pk_command_ids PRIMARY KEY (principal, id)
)
 WITHOUT ROWID;

CREATE INDEX ix_command_ids_is_foreign_recorded_at ON command_ids (is_foreign, recorded_at);

CREATE TABLE dead_letters (
    seq INTEGER NOT NULL,
    principal TEXT NOT NULL,
    id BLOB NOT NULL,
    envelope BLOB NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    cause TEXT NOT NULL CONSTRAINT ck_dead_letters_cause CHECK (cause IN ('exception','death','hang')),
    error TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    recorded_at BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    CONSTRAINT pk_dead_letters PRIMARY KEY (seq),
    CONSTRAINT uq_dead_letters_principal_id UNIQUE (principal, id)
);

CREATE TABLE parked_letters (
    seq INTEGER NOT NULL,
    principal TEXT NOT NULL,
    id BLOB NOT NULL,
    envelope BLOB NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    reason TEXT NOT NULL,
    recorded_at BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    CONSTRAINT pk_parked_letters PRIMARY KEY (seq),
    CONSTRAINT uq_parked_letters_principal_id UNIQUE (principal, id)
);

CREATE TABLE audit_log (
    seq INTEGER NOT NULL,
    at BIGINT NOT NULL,
    op TEXT NOT NULL,
    project_id BLOB,
    page_id BLOB,
    principal TEXT NOT NULL,
    command_id BLOB,
    detail TEXT NOT NULL,
    CONSTRAINT pk_audit_log PRIMARY KEY (seq)
);

CREATE TABLE projects (
    number INTEGER NOT NULL,
    id BLOB NOT NULL,
    workspace_id BLOB NOT NULL,
    name TEXT NOT NULL,
    repo_path TEXT,
    created_at BIGINT NOT NULL,
    CONSTRAINT pk_projects PRIMARY KEY (number),
    CONSTRAINT uq_projects_workspace_id_name UNIQUE (workspace_id, name),
    CONSTRAINT uq_projects_id UNIQUE (id),
    CONSTRAINT fk_projects_workspace_id FOREIGN KEY(workspace_id) REFERENCES workspaces (id) ON DELETE CASCADE
);

CREATE INDEX ix_projects_repo_path ON projects (workspace_id, repo_path) WHERE repo_path IS NOT NULL;

CREATE TABLE tokens (
    public_id TEXT NOT NULL,
    principal TEXT NOT NULL,
    digest BLOB NOT NULL,
    scope TEXT NOT NULL CONSTRAINT ck_tokens_scope CHECK (scope IN ('admin','write','read','capture','pool')),
    project_id BLOB,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT,
    CONSTRAINT pk_tokens PRIMARY KEY (public_id),
    CONSTRAINT fk_tokens_principal FOREIGN KEY(principal) REFERENCES principals (name),
    CONSTRAINT fk_tokens_project_id FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE
);

CREATE TABLE pages (
    number INTEGER NOT NULL,
    id BLOB NOT NULL,
    project_id BLOB NOT NULL,
    owner TEXT,
    token_scope TEXT NOT NULL,
    path TEXT NOT NULL,
    path_key TEXT NOT NULL,
    version_id BLOB NOT NULL,
    pinned INTEGER NOT NULL,
    access_count INTEGER DEFAULT 0 NOT NULL,
    last_accessed_at BIGINT,
    salience FLOAT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    expires_at BIGINT,
    tombstoned_at BIGINT,
    CONSTRAINT pk_pages PRIMARY KEY (number),
    CONSTRAINT uq_pages_id UNIQUE (id),
    CONSTRAINT fk_pages_project_id FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE
);

CREATE INDEX ix_pages_recent ON pages (project_id, updated_at) WHERE tombstoned_at IS NULL;

CREATE UNIQUE INDEX uq_pages_path ON pages (project_id, path_key) WHERE tombstoned_at IS NULL;

CREATE TABLE file_outbox (
    seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    project_id BLOB NOT NULL,
    owner TEXT,
    token_scope TEXT NOT NULL,
    page_id BLOB NOT NULL,
    file TEXT NOT NULL,
    expected TEXT NOT NULL,
    version_id BLOB,
    sha256 BLOB,
    created_at BIGINT NOT NULL,
    CONSTRAINT fk_file_outbox_project_id FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE
);

CREATE INDEX ix_file_outbox_file ON file_outbox (file);

CREATE TABLE sessions (
    id BLOB NOT NULL,
    project_id BLOB NOT NULL,
    owner TEXT,
    token_scope TEXT NOT NULL,
    agent TEXT NOT NULL,
    vendor_key TEXT NOT NULL,
    cwd TEXT,
    model TEXT,
    title TEXT,
    started_at BIGINT NOT NULL,
    last_event_at BIGINT NOT NULL,
    ended_at BIGINT,
    end_reason TEXT,
    observation_count INTEGER NOT NULL,
    substance_count INTEGER NOT NULL,
    finalised_count INTEGER,
    refinalise_at BIGINT,
    page_id BLOB,
    CONSTRAINT pk_sessions PRIMARY KEY (id),
    CONSTRAINT fk_sessions_project_id FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE,
    CONSTRAINT fk_sessions_page_id FOREIGN KEY(page_id) REFERENCES pages (id) ON DELETE SET NULL
);

CREATE INDEX ix_sessions_open ON sessions (last_event_at) WHERE ended_at IS NULL;

CREATE INDEX ix_sessions_project_id_last_event_at ON sessions (project_id, last_event_at);

CREATE INDEX ix_sessions_refinalise_at ON sessions (refinalise_at) WHERE refinalise_at IS NOT NULL;

CREATE TABLE page_versions (
    seq INTEGER NOT NULL,
    id BLOB NOT NULL,
    project_id BLOB NOT NULL,
    owner TEXT,
    token_scope TEXT NOT NULL,
    page_id BLOB NOT NULL,
    supersedes BLOB,
    title TEXT NOT NULL,
    kind TEXT NOT NULL,
    tier TEXT NOT NULL CONSTRAINT ck_page_versions_tier CHECK (tier IN ('working','episodic','semantic','procedural')),
    tags TEXT NOT NULL,
    content TEXT NOT NULL,
    body_start INTEGER NOT NULL,
    sha256 BLOB NOT NULL,
    cause TEXT NOT NULL,
    session_id BLOB,
    actor TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    superseded_at BIGINT,
    CONSTRAINT pk_page_versions PRIMARY KEY (seq),
    CONSTRAINT uq_page_versions_id UNIQUE (id),
    CONSTRAINT fk_page_versions_project_id FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE,
    CONSTRAINT fk_page_versions_page_id FOREIGN KEY(page_id) REFERENCES pages (id) ON DELETE CASCADE
);

CREATE INDEX ix_page_versions_page_id_seq ON page_versions (page_id, seq);

CREATE TABLE links (
    from_page_id BLOB NOT NULL,
    to_project_id BLOB NOT NULL,
    to_path_key TEXT NOT NULL,
    to_page_id BLOB,
    CONSTRAINT pk_links PRIMARY KEY (from_page_id, to_project_id, to_path_key),
    CONSTRAINT fk_links_from_page_id FOREIGN KEY(from_page_id) REFERENCES pages (id) ON DELETE CASCADE,
    CONSTRAINT fk_links_to_project_id FOREIGN KEY(to_project_id) REFERENCES projects (id) ON DELETE CASCADE,
    CONSTRAINT fk_links_to_page_id FOREIGN KEY(to_page_id) REFERENCES pages (id) ON DELETE SET NULL
)
 WITHOUT ROWID;

CREATE INDEX ix_links_to_page_id ON links (to_page_id);

CREATE INDEX ix_links_to_project_id_to_path_key ON links (to_project_id, to_path_key);

CREATE TABLE page_feedback (
    id BLOB NOT NULL,
    project_id BLOB NOT NULL,
    owner TEXT,
    token_scope TEXT NOT NULL,
    page_id BLOB NOT NULL,
    version_id BLOB NOT NULL,
    signal TEXT NOT NULL CONSTRAINT ck_page_feedback_signal CHECK (signal IN ('helpful','not_helpful','stale','wrong')),
    reason TEXT,
    created_at BIGINT NOT NULL,
    CONSTRAINT uq_page_feedback_id UNIQUE (id),
    CONSTRAINT fk_page_feedback_project_id FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE,
    CONSTRAINT fk_page_feedback_page_id FOREIGN KEY(page_id) REFERENCES pages (id) ON DELETE CASCADE
);

CREATE INDEX ix_page_feedback_page_id ON page_feedback (page_id);

CREATE TABLE observations (
    seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    id BLOB NOT NULL,
    project_id BLOB NOT NULL,
    owner TEXT,
    token_scope TEXT NOT NULL,
    session_id BLOB NOT NULL,
    kind TEXT NOT NULL,
    source_event TEXT NOT NULL,
    extension TEXT,
    speaker TEXT NOT NULL,
    title TEXT NOT NULL,
    body TEXT NOT NULL,
    tool TEXT,
    tool_family TEXT,
    tool_call TEXT,
    command TEXT,
    paths TEXT,
    outcome TEXT,
    result TEXT,
    agent_id TEXT,
    importance INTEGER NOT NULL,
    twin_hash BLOB NOT NULL,
    source TEXT NOT NULL,
    occurred_at BIGINT,
    recorded_at BIGINT NOT NULL,
    CONSTRAINT uq_observations_id UNIQUE (id),
    CONSTRAINT fk_observations_project_id FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE,
    CONSTRAINT fk_observations_session_id FOREIGN KEY(session_id) REFERENCES sessions (id) ON DELETE CASCADE
);

CREATE INDEX ix_observations_session_id_seq ON observations (session_id, seq);

CREATE INDEX ix_observations_twin ON observations (session_id, twin_hash);

CREATE TABLE handoffs (
    id BLOB NOT NULL,
    project_id BLOB NOT NULL,
    owner TEXT,
    token_scope TEXT NOT NULL,
    from_session_id BLOB,
    is_manual INTEGER NOT NULL,
    from_agent TEXT,
    to_agent TEXT,
    model TEXT,
    cwd TEXT,
    summary TEXT NOT NULL,
    open_questions TEXT NOT NULL,
    next_steps TEXT NOT NULL,
    files_touched TEXT NOT NULL,
    state TEXT NOT NULL CONSTRAINT ck_handoffs_state CHECK (state IN ('open','offered','accepted','expired')),
    offered_to BLOB,
    offered_until BIGINT,
    accepted_by_session BLOB,
    accepted_by_agent TEXT,
    accepted_at BIGINT,
    created_at BIGINT NOT NULL,
    CONSTRAINT pk_handoffs PRIMARY KEY (id),
    CONSTRAINT ck_handoffs_offer CHECK ((state = 'offered') = (offered_to IS NOT NULL AND offered_until IS NOT NULL)),
    CONSTRAINT ck_handoffs_acceptance CHECK ((state = 'accepted') = (accepted_at IS NOT NULL)),
    CONSTRAINT fk_handoffs_project_id FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE,
    CONSTRAINT fk_handoffs_from_session_id FOREIGN KEY(from_session_id) REFERENCES sessions (id) ON DELETE SET NULL
);

CREATE INDEX ix_handoffs_from_session_id ON handoffs (from_session_id);

CREATE INDEX ix_handoffs_offered_to ON handoffs (offered_to) WHERE offered_to IS NOT NULL;

CREATE INDEX ix_handoffs_project_id_state ON handoffs (project_id, state)
"""

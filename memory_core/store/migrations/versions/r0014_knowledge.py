"""Knowledge: entries, their versions, their tombstones."""

from __future__ import annotations

from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for statement in _DDL.split(";\n\n"):
        op.get_bind().exec_driver_sql(statement)


_DDL = """
CREATE TABLE knowledge (
    id BLOB NOT NULL,
    project_id BLOB NOT NULL,
    owner TEXT,
    token_scope TEXT NOT NULL,
    host TEXT NOT NULL,
    device TEXT NOT NULL,
    inode TEXT NOT NULL,
    "key" TEXT NOT NULL,
    page_id BLOB,
    active_version INTEGER NOT NULL,
    pinned INTEGER NOT NULL,
    tombstoned_at BIGINT,
    is_legacy INTEGER NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    CONSTRAINT pk_knowledge PRIMARY KEY (id),
    CONSTRAINT uq_knowledge_identity UNIQUE (host, device, inode, "key"),
    CONSTRAINT ck_knowledge_host CHECK (length(CAST(host AS BLOB)) BETWEEN 1 AND 255),
    CONSTRAINT ck_knowledge_numbers CHECK (device <> '' AND inode <> '' AND device NOT GLOB '*[^0-9]*' AND inode NOT GLOB '*[^0-9]*'),
    CONSTRAINT ck_knowledge_key CHECK (length(CAST(key AS BLOB)) BETWEEN 1 AND 256),
    CONSTRAINT ck_knowledge_active_version CHECK (active_version BETWEEN 1 AND 4294967295),
    CONSTRAINT ck_knowledge_flags CHECK (pinned IN (0, 1) AND is_legacy IN (0, 1)),
    CONSTRAINT ck_knowledge_pinned CHECK (pinned = 0 OR tombstoned_at IS NULL),
    CONSTRAINT fk_knowledge_project_id FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE,
    CONSTRAINT fk_knowledge_page_id FOREIGN KEY(page_id) REFERENCES pages (id) ON DELETE SET NULL
);

CREATE INDEX ix_knowledge_age ON knowledge (updated_at) WHERE tombstoned_at IS NULL;

CREATE INDEX ix_knowledge_directory ON knowledge (host, device, inode, tombstoned_at, pinned DESC, updated_at DESC);

CREATE INDEX ix_knowledge_project ON knowledge (project_id, tombstoned_at, pinned DESC, updated_at DESC);

CREATE INDEX ix_knowledge_tombstones ON knowledge (tombstoned_at) WHERE tombstoned_at IS NOT NULL;

CREATE UNIQUE INDEX uq_knowledge_page ON knowledge (page_id) WHERE page_id IS NOT NULL;

CREATE TABLE knowledge_versions (
    knowledge_id BLOB NOT NULL,
    version INTEGER NOT NULL,
    content TEXT NOT NULL,
    confidence FLOAT NOT NULL,
    origin TEXT NOT NULL,
    source_session_id BLOB,
    provenance_session_id BLOB,
    source_first_sequence INTEGER,
    source_last_sequence INTEGER,
    source_sha256 BLOB,
    job_id BLOB,
    candidate_index INTEGER,
    actor TEXT NOT NULL,
    token_scope TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    CONSTRAINT pk_knowledge_versions PRIMARY KEY (knowledge_id, version),
    CONSTRAINT ck_knowledge_versions_version CHECK (version BETWEEN 1 AND 4294967295),
    CONSTRAINT ck_knowledge_versions_content CHECK (length(CAST(content AS BLOB)) BETWEEN 1 AND 1048576),
    CONSTRAINT ck_knowledge_versions_origin CHECK (origin IN ('manual','distillation')),
    CONSTRAINT ck_knowledge_versions_source CHECK ((provenance_session_id IS NULL) = (source_first_sequence IS NULL) AND (provenance_session_id IS NULL) = (source_last_sequence IS NULL) AND (provenance_session_id IS NULL) = (source_sha256 IS NULL) AND (provenance_session_id IS NULL OR (length(source_sha256) = 32 AND source_first_sequence > 0 AND source_last_sequence >= source_first_sequence))),
    CONSTRAINT ck_knowledge_versions_candidate CHECK ((job_id IS NULL) = (candidate_index IS NULL) AND (candidate_index IS NULL OR candidate_index >= 0)),
    CONSTRAINT ck_knowledge_versions_confidence CHECK (typeof(confidence) = 'real' AND confidence BETWEEN 0 AND 1),
    CONSTRAINT fk_knowledge_versions_knowledge_id FOREIGN KEY(knowledge_id) REFERENCES knowledge (id) ON DELETE CASCADE,
    CONSTRAINT fk_knowledge_versions_source_session_id FOREIGN KEY(source_session_id) REFERENCES sessions (id) ON DELETE SET NULL
);

CREATE INDEX ix_knowledge_versions_session ON knowledge_versions (source_session_id) WHERE source_session_id IS NOT NULL;

CREATE UNIQUE INDEX uq_knowledge_versions_job ON knowledge_versions (job_id, candidate_index) WHERE job_id IS NOT NULL;

CREATE TABLE knowledge_tombstones (
    id BLOB NOT NULL,
    knowledge_id BLOB NOT NULL,
    confidence FLOAT NOT NULL,
    origin TEXT NOT NULL,
    provenance_session_id BLOB,
    source_first_sequence INTEGER,
    source_last_sequence INTEGER,
    source_sha256 BLOB,
    job_id BLOB,
    candidate_index INTEGER,
    actor TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    CONSTRAINT pk_knowledge_tombstones PRIMARY KEY (id),
    CONSTRAINT ck_knowledge_tombstones_origin CHECK (origin IN ('manual','distillation','age')),
    CONSTRAINT ck_knowledge_tombstones_source CHECK ((provenance_session_id IS NULL) = (source_first_sequence IS NULL) AND (provenance_session_id IS NULL) = (source_last_sequence IS NULL) AND (provenance_session_id IS NULL) = (source_sha256 IS NULL) AND (provenance_session_id IS NULL OR (length(source_sha256) = 32 AND source_first_sequence > 0 AND source_last_sequence >= source_first_sequence))),
    CONSTRAINT ck_knowledge_tombstones_candidate CHECK ((job_id IS NULL) = (candidate_index IS NULL) AND (candidate_index IS NULL OR candidate_index >= 0)),
    CONSTRAINT ck_knowledge_tombstones_confidence CHECK (typeof(confidence) = 'real' AND confidence BETWEEN 0 AND 1),
    CONSTRAINT fk_knowledge_tombstones_knowledge_id FOREIGN KEY(knowledge_id) REFERENCES knowledge (id) ON DELETE CASCADE
);

CREATE INDEX ix_knowledge_tombstones_knowledge_id ON knowledge_tombstones (knowledge_id);

CREATE UNIQUE INDEX uq_knowledge_tombstones_job ON knowledge_tombstones (job_id, candidate_index) WHERE job_id IS NOT NULL
"""

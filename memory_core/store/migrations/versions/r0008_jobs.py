"""Jobs, turns of projects, paused queues, and slots of schedules."""

from __future__ import annotations

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for statement in _DDL.split(";\n\n"):
        op.get_bind().exec_driver_sql(statement)


_DDL = """
CREATE TABLE jobs (
    id BLOB NOT NULL,
    kind TEXT NOT NULL,
    queue TEXT NOT NULL,
    project_id BLOB,
    scope BLOB NOT NULL,
    subject TEXT NOT NULL,
    source_digest BLOB NOT NULL,
    on_data_host INTEGER NOT NULL,
    principal TEXT NOT NULL,
    token_scope TEXT NOT NULL,
    state TEXT NOT NULL,
    failures INTEGER NOT NULL,
    deaths INTEGER NOT NULL,
    claims INTEGER NOT NULL,
    claim_hash BLOB,
    worker TEXT,
    claimed_at BIGINT,
    renewed_at BIGINT,
    lease_until BIGINT,
    input_digest BLOB,
    not_before BIGINT,
    waits_for TEXT,
    last_error TEXT,
    cancel_asked_at BIGINT,
    cursor TEXT,
    result TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    finished_at BIGINT,
    CONSTRAINT pk_jobs PRIMARY KEY (id),
    CONSTRAINT uq_jobs_identity UNIQUE (kind, scope, subject, source_digest),
    CONSTRAINT ck_jobs_state CHECK (state IN ('pending','running','completed','failed','cancelled')),
    CONSTRAINT ck_jobs_scope CHECK (scope = coalesce(project_id, x'')),
    CONSTRAINT ck_jobs_counts CHECK (failures >= 0 AND deaths >= 0 AND claims >= 0),
    CONSTRAINT ck_jobs_source CHECK (length(source_digest) = 32),
    CONSTRAINT ck_jobs_claim CHECK ((state = 'running') = (claim_hash IS NOT NULL) AND (state = 'running') = (lease_until IS NOT NULL)
        AND (state = 'running' OR renewed_at IS NULL) AND (claim_hash IS NULL OR length(claim_hash) = 32)),
    CONSTRAINT ck_jobs_claimed CHECK ((claims > 0) = (worker IS NOT NULL) AND (claims > 0) = (claimed_at IS NOT NULL)
        AND (claims > 0 OR state IN ('pending','failed','cancelled'))),
    CONSTRAINT ck_jobs_waiting CHECK ((not_before IS NULL) = (waits_for IS NULL) AND (not_before IS NULL OR state = 'pending')
        AND (waits_for IS NULL OR waits_for <> 'retry' OR failures > 0)),
    CONSTRAINT ck_jobs_error CHECK ((state = 'completed' AND last_error IS NULL)
        OR (state <> 'completed' AND (failures > 0) = (last_error IS NOT NULL))),
    CONSTRAINT ck_jobs_failed CHECK (state <> 'failed' OR failures > 0),
    CONSTRAINT ck_jobs_error_size CHECK (last_error IS NULL OR length(CAST(last_error AS BLOB)) <= 4096),
    CONSTRAINT ck_jobs_cancelling CHECK (cancel_asked_at IS NULL OR state IN ('running','cancelled')),
    CONSTRAINT ck_jobs_result CHECK ((state = 'completed') = (result IS NOT NULL)
        AND (result IS NULL OR length(CAST(result AS BLOB)) <= 4096)),
    CONSTRAINT ck_jobs_finished CHECK ((state IN ('completed','failed','cancelled')) = (finished_at IS NOT NULL)),
    CONSTRAINT fk_jobs_project_id FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE
);

CREATE INDEX ix_jobs_leases ON jobs (lease_until) WHERE lease_until IS NOT NULL;

CREATE INDEX ix_jobs_project_id_id ON jobs (project_id, id);

CREATE INDEX ix_jobs_queue_state_kind_id ON jobs (queue, state, kind, id);

CREATE INDEX ix_jobs_ready ON jobs (queue, on_data_host, scope, id) WHERE state = 'pending' AND not_before IS NULL;

CREATE INDEX ix_jobs_state_id ON jobs (state, id);

CREATE INDEX ix_jobs_waiting ON jobs (not_before) WHERE not_before IS NOT NULL;

CREATE TABLE job_turns (
    queue TEXT NOT NULL,
    scope BLOB NOT NULL,
    turn INTEGER NOT NULL,
    CONSTRAINT pk_job_turns PRIMARY KEY (queue, scope)
) WITHOUT ROWID;

CREATE INDEX ix_job_turns_queue_turn ON job_turns (queue, turn);

CREATE TABLE job_queues (
    queue TEXT NOT NULL,
    paused_at BIGINT NOT NULL,
    paused_by TEXT NOT NULL,
    CONSTRAINT pk_job_queues PRIMARY KEY (queue)
);

CREATE TABLE schedule_slots (
    kind TEXT NOT NULL,
    scope BLOB NOT NULL,
    slot TEXT NOT NULL,
    job_id BLOB,
    staged_at BIGINT NOT NULL,
    CONSTRAINT pk_schedule_slots PRIMARY KEY (kind, scope, slot),
    CONSTRAINT fk_schedule_slots_job_id FOREIGN KEY(job_id) REFERENCES jobs (id) ON DELETE SET NULL
) WITHOUT ROWID;

CREATE INDEX ix_schedule_slots_job_id ON schedule_slots (job_id);

CREATE INDEX ix_schedule_slots_kind_scope_staged_at ON schedule_slots (kind, scope, staged_at);

CREATE INDEX ix_schedule_slots_kind_staged_at ON schedule_slots (kind, staged_at);

CREATE INDEX ix_schedule_slots_staged_at ON schedule_slots (staged_at)
"""

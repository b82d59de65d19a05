"""Calls of models, their sums by day, what stops them, and the budget."""

from __future__ import annotations

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for statement in _DDL.split(";\n\n"):
        op.get_bind().exec_driver_sql(statement)


_DDL = """
CREATE TABLE model_calls (
    id BLOB NOT NULL,
    job_id BLOB NOT NULL,
    claim_hash BLOB NOT NULL,
    kind TEXT NOT NULL,
    scope BLOB NOT NULL,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    prompt TEXT NOT NULL,
    day TEXT NOT NULL,
    price_input BIGINT,
    price_output BIGINT,
    price_cached BIGINT,
    reserved_input BIGINT NOT NULL,
    reserved_output BIGINT NOT NULL,
    reserved_money BIGINT NOT NULL,
    input_tokens BIGINT,
    output_tokens BIGINT,
    cached_tokens BIGINT,
    money BIGINT,
    outcome TEXT,
    started_at BIGINT NOT NULL,
    settled_at BIGINT,
    CONSTRAINT pk_model_calls PRIMARY KEY (id),
    CONSTRAINT ck_model_calls_claim CHECK (length(claim_hash) = 32),
    CONSTRAINT ck_model_calls_price CHECK ((price_input IS NULL) = (price_output IS NULL) AND (price_input IS NULL) = (price_cached IS NULL)),
    CONSTRAINT ck_model_calls_reserved CHECK (reserved_input >= 0 AND reserved_output >= 0 AND reserved_money >= 0),
    CONSTRAINT ck_model_calls_settled CHECK ((settled_at IS NULL) = (outcome IS NULL) AND (settled_at IS NULL) = (input_tokens IS NULL) AND (settled_at IS NULL) = (output_tokens IS NULL) AND (settled_at IS NULL) = (cached_tokens IS NULL) AND (settled_at IS NULL) = (money IS NULL)),
    CONSTRAINT ck_model_calls_used CHECK (settled_at IS NULL OR (input_tokens >= 0 AND output_tokens >= 0 AND cached_tokens >= 0 AND money >= 0))
);

CREATE INDEX ix_model_calls_open ON model_calls (day) WHERE settled_at IS NULL;

CREATE INDEX ix_model_calls_started_at ON model_calls (started_at);

CREATE TABLE model_usage (
    day TEXT NOT NULL,
    scope BLOB NOT NULL,
    kind TEXT NOT NULL,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    calls BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    lost BIGINT NOT NULL,
    unpriced BIGINT NOT NULL,
    input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    cached_tokens BIGINT NOT NULL,
    money BIGINT NOT NULL,
    CONSTRAINT pk_model_usage PRIMARY KEY (day, scope, kind, provider, model)
)
 WITHOUT ROWID;

CREATE TABLE model_pauses (
    reason TEXT NOT NULL,
    scope BLOB NOT NULL,
    kind TEXT NOT NULL,
    since BIGINT NOT NULL,
    until BIGINT,
    note TEXT NOT NULL,
    set_by TEXT NOT NULL,
    CONSTRAINT pk_model_pauses PRIMARY KEY (reason, scope, kind),
    CONSTRAINT ck_model_pauses_note CHECK (length(CAST(note AS BLOB)) <= 4096)
)
 WITHOUT ROWID;

CREATE TABLE model_refusals (
    day TEXT NOT NULL,
    kind TEXT NOT NULL,
    reason TEXT NOT NULL,
    count BIGINT NOT NULL,
    CONSTRAINT pk_model_refusals PRIMARY KEY (day, kind, reason)
)
 WITHOUT ROWID;

CREATE TABLE model_budget (
    id INTEGER NOT NULL,
    budget TEXT NOT NULL,
    changed_at BIGINT NOT NULL,
    free_before BIGINT,
    CONSTRAINT pk_model_budget PRIMARY KEY (id),
    CONSTRAINT ck_model_budget_one CHECK (id = 1)
)
"""

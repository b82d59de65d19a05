"""What a distillation found is kept until it took effect, slice by slice."""

from __future__ import annotations

from alembic import op

revision = "0020"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.get_bind().exec_driver_sql(_DDL)


_DDL = """
CREATE TABLE distillation_candidates (
    job_id BLOB NOT NULL,
    candidate_index INTEGER NOT NULL,
    candidate_json TEXT NOT NULL,
    CONSTRAINT pk_distillation_candidates PRIMARY KEY (job_id, candidate_index),
    CONSTRAINT ck_distillation_candidates_candidate_index CHECK (candidate_index >= 0),
    CONSTRAINT ck_distillation_candidates_candidate_json CHECK (typeof(candidate_json) = 'text' AND json_valid(candidate_json) AND length(CAST(candidate_json AS BLOB)) <= 4194304),
    CONSTRAINT fk_distillation_candidates_job_id FOREIGN KEY(job_id) REFERENCES distillations (job_id) ON DELETE CASCADE
)
"""

"""How many jobs are in each state, kept by triggers; failed jobs by the time at which they failed."""

from __future__ import annotations

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for statement in _DDL:
        op.get_bind().exec_driver_sql(statement)


_DDL = (
    """CREATE INDEX ix_jobs_failed ON jobs (finished_at) WHERE state = 'failed'""",
    """CREATE TABLE job_counts (
    queue TEXT NOT NULL,
    kind TEXT NOT NULL,
    event TEXT NOT NULL,
    present INTEGER NOT NULL,
    total INTEGER NOT NULL,
    CONSTRAINT pk_job_counts PRIMARY KEY (queue, kind, event),
    CONSTRAINT ck_job_counts_counts CHECK (present >= 0 AND total >= present)
)
 WITHOUT ROWID""",
    """INSERT INTO job_counts(queue, kind, event, present, total)
    SELECT queue, kind, state, count(*), count(*) FROM jobs GROUP BY queue, kind, state""",
    """CREATE TRIGGER jobs_came AFTER INSERT ON jobs BEGIN
    INSERT INTO job_counts(queue, kind, event, present, total) VALUES (new.queue, new.kind, new.state, 1, 1)
    ON CONFLICT (queue, kind, event) DO UPDATE SET present = present + 1, total = total + 1;
END""",
    """CREATE TRIGGER jobs_moved AFTER UPDATE OF state ON jobs WHEN new.state <> old.state BEGIN
    UPDATE job_counts SET present = present - 1
    WHERE queue = old.queue AND kind = old.kind AND event = old.state;
    INSERT INTO job_counts(queue, kind, event, present, total) VALUES (new.queue, new.kind, new.state, 1, 1)
    ON CONFLICT (queue, kind, event) DO UPDATE SET present = present + 1, total = total + 1;
END""",
    """CREATE TRIGGER jobs_failed AFTER UPDATE OF failures ON jobs WHEN new.failures > old.failures BEGIN
    INSERT INTO job_counts(queue, kind, event, present, total) VALUES (new.queue, new.kind, 'failure', 0, 1)
    ON CONFLICT (queue, kind, event) DO UPDATE SET total = total + 1;
END""",
    """CREATE TRIGGER jobs_gone AFTER DELETE ON jobs BEGIN
    UPDATE job_counts SET present = present - 1
    WHERE queue = old.queue AND kind = old.kind AND event = old.state;
END""",
)

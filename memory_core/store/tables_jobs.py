"""Jobs, how many there are of each state, the order in which projects take their turns, paused queues, slots of schedules."""

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
    and_,
    text,
)

from memory_core.store.columns import at
from memory_core.store.tables import metadata

#: Background work, one row each; what may stand together is said by the checks and drawn in docs/jobs.md.
jobs = Table(
    "jobs",
    metadata,
    Column("id", LargeBinary(16), primary_key=True),
    Column("kind", Text, nullable=False),
    Column("queue", Text, nullable=False),
    #: NULL: the whole install.
    Column("project_id", LargeBinary(16), ForeignKey("projects.id", ondelete="CASCADE"), nullable=True),
    #: The project once more, as the empty blob where there is none: a NULL is never equal to another.
    Column("scope", LargeBinary, nullable=False),
    Column("subject", Text, nullable=False),
    Column("source_digest", LargeBinary(32), nullable=False),
    Column("on_data_host", Integer, nullable=False),
    Column("principal", Text, nullable=False),
    Column("token_scope", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("failures", Integer, nullable=False),
    Column("deaths", Integer, nullable=False),
    Column("claims", Integer, nullable=False),
    #: SHA-256 of the lease token.
    Column("claim_hash", LargeBinary(32), nullable=True),
    #: Of the claim, or of the last one.
    Column("worker", Text, nullable=True),
    at("claimed_at", nullable=True),
    at("renewed_at", nullable=True),
    at("lease_until", nullable=True),
    Column("input_digest", LargeBinary(32), nullable=True),
    at("not_before", nullable=True),
    #: `retry` after a counted failure, else why it was handed back.
    Column("waits_for", Text, nullable=True),
    #: One of the fixed sentences.
    Column("last_error", Text, nullable=True),
    at("cancel_asked_at", nullable=True),
    #: JSON: where a job of slices goes on.
    Column("cursor", Text, nullable=True),
    #: JSON: counts and ids.
    Column("result", Text, nullable=True),
    at("created_at"),
    at("updated_at"),
    at("finished_at", nullable=True),
    UniqueConstraint("kind", "scope", "subject", "source_digest", name="uq_jobs_identity"),
    CheckConstraint("state IN ('pending','running','completed','failed','cancelled')", name="state"),
    CheckConstraint("scope = coalesce(project_id, x'')", name="scope"),
    CheckConstraint("failures >= 0 AND deaths >= 0 AND claims >= 0", name="counts"),
    CheckConstraint("length(source_digest) = 32", name="source"),
    CheckConstraint(
        "(state = 'running') = (claim_hash IS NOT NULL) AND (state = 'running') = (lease_until IS NOT NULL)"
        " AND (state = 'running' OR renewed_at IS NULL) AND (claim_hash IS NULL OR length(claim_hash) = 32)",
        name="claim",
    ),
    CheckConstraint(
        "(claims > 0) = (worker IS NOT NULL) AND (claims > 0) = (claimed_at IS NOT NULL)"
        " AND (claims > 0 OR state IN ('pending','failed','cancelled'))",
        name="claimed",
    ),
    CheckConstraint(
        "(not_before IS NULL) = (waits_for IS NULL) AND (not_before IS NULL OR state = 'pending')"
        " AND (waits_for IS NULL OR waits_for <> 'retry' OR failures > 0)",
        name="waiting",
    ),
    CheckConstraint(
        "(state = 'completed' AND last_error IS NULL)"
        " OR (state <> 'completed' AND (failures > 0) = (last_error IS NOT NULL))",
        name="error",
    ),
    CheckConstraint("state <> 'failed' OR failures > 0", name="failed"),
    CheckConstraint("last_error IS NULL OR length(CAST(last_error AS BLOB)) <= 4096", name="error_size"),
    CheckConstraint("cancel_asked_at IS NULL OR state IN ('running','cancelled')", name="cancelling"),
    CheckConstraint(
        "(state = 'completed') = (result IS NOT NULL)"
        " AND (result IS NULL OR length(CAST(result AS BLOB)) <= 4096)",
        name="result",
    ),
    CheckConstraint(
        "(state IN ('completed','failed','cancelled')) = (finished_at IS NOT NULL)", name="finished"
    ),
)
_j = jobs.c
#: What can be claimed now, by project and age.
Index(
    "ix_jobs_ready",
    _j.queue,
    _j.on_data_host,
    _j.scope,
    _j.id,
    sqlite_where=and_(_j.state == text("'pending'"), _j.not_before.is_(None)),
)
Index("ix_jobs_waiting", _j.not_before, sqlite_where=_j.not_before.is_not(None))
Index("ix_jobs_leases", _j.lease_until, sqlite_where=_j.lease_until.is_not(None))
Index(None, _j.queue, _j.state, _j.kind, _j.id)
Index(None, _j.state, _j.id)
Index(None, _j.project_id, _j.id)
Index("ix_jobs_failed", _j.finished_at, sqlite_where=_j.state == text("'failed'"))

#: How many jobs are in each state and how often one came into it, kept by the triggers below: nobody counts rows.
job_counts = Table(
    "job_counts",
    metadata,
    Column("queue", Text, nullable=False),
    Column("kind", Text, nullable=False),
    #: A state, or `failure`: a counted failure.
    Column("event", Text, nullable=False),
    Column("present", Integer, nullable=False),
    Column("total", Integer, nullable=False),
    PrimaryKeyConstraint("queue", "kind", "event"),
    CheckConstraint("present >= 0 AND total >= present", name="counts"),
    sqlite_with_rowid=False,
)

#: Round robin: the next job of a queue is the oldest due one of the scope whose turn is the lowest.
job_turns = Table(
    "job_turns",
    metadata,
    Column("queue", Text, nullable=False),
    Column("scope", LargeBinary, nullable=False),
    Column("turn", Integer, nullable=False),
    PrimaryKeyConstraint("queue", "scope"),
    sqlite_with_rowid=False,
)
Index(None, job_turns.c.queue, job_turns.c.turn)

#: Queues that give no job at present.
job_queues = Table(
    "job_queues",
    metadata,
    Column("queue", Text, primary_key=True),
    at("paused_at"),
    Column("paused_by", Text, nullable=False),
)

#: Which slots of a schedule were made jobs of: each once, whoever rings and whatever the clock does.
schedule_slots = Table(
    "schedule_slots",
    metadata,
    Column("kind", Text, nullable=False),
    #: A project's id, or the empty blob.
    Column("scope", LargeBinary, nullable=False),
    #: The slot's time as RFC 3339 text, or `manual:` and an id.
    Column("slot", Text, nullable=False),
    Column("job_id", LargeBinary(16), ForeignKey("jobs.id", ondelete="SET NULL"), nullable=True),
    at("staged_at"),
    PrimaryKeyConstraint("kind", "scope", "slot"),
    sqlite_with_rowid=False,
)
Index(None, schedule_slots.c.kind, schedule_slots.c.scope, schedule_slots.c.staged_at)
Index(None, schedule_slots.c.kind, schedule_slots.c.staged_at)
Index(None, schedule_slots.c.staged_at)
Index(None, schedule_slots.c.job_id)

#: Whoever writes a job, and however it goes, the counts are those of the rows.
TRIGGERS = (
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

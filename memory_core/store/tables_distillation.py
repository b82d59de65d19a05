"""What a distillation found and has not entered yet."""

from __future__ import annotations

from sqlalchemy import (
    CheckConstraint,
    Column,
    ForeignKey,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
)

from memory_core import limits
from memory_core.store.tables import metadata
from memory_core.store.tables_durable import distillations

#: Candidates that wait for their slice; gone with it. Each as `read_candidates` takes it.
distillation_candidates = Table(
    "distillation_candidates",
    metadata,
    Column("job_id", LargeBinary(16), ForeignKey(distillations.c.job_id, ondelete="CASCADE"), nullable=False),
    Column("candidate_index", Integer, nullable=False),
    Column("candidate_json", Text, nullable=False),
    PrimaryKeyConstraint("job_id", "candidate_index"),
    CheckConstraint("candidate_index >= 0", name="candidate_index"),
    CheckConstraint(
        "typeof(candidate_json) = 'text' AND json_valid(candidate_json)"
        f" AND length(CAST(candidate_json AS BLOB)) <= {limits.JOB_OUTPUT_MAX_BYTES}",
        name="candidate_json",
    ),
)

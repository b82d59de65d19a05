"""Calls of models: each one, their sums by day, what stops them, and the budget that they are under."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
)

from memory_core.store.columns import at
from memory_core.store.tables import metadata

#: One request to a provider: reserved before it goes out, settled after it. It outlives its job and its project: money
#: that was spent stays spent.
model_calls = Table(
    "model_calls",
    metadata,
    #: The caller's own, so that asking twice reserves once.
    Column("id", LargeBinary(16), primary_key=True),
    #: Zeros, and a claim of zeros, where a question made the call and no job.
    Column("job_id", LargeBinary(16), nullable=False),
    #: SHA-256 of the lease token of the claim that it belongs to.
    Column("claim_hash", LargeBinary(32), nullable=False),
    Column("kind", Text, nullable=False),
    #: The project's id, or the empty blob.
    Column("scope", LargeBinary, nullable=False),
    Column("provider", Text, nullable=False),
    Column("model", Text, nullable=False),
    #: Id of the prompt, name and version; empty where there was none.
    Column("prompt", Text, nullable=False),
    #: UTC, of the reservation: the day that it counts to.
    Column("day", Text, nullable=False),
    #: Micro-units per million tokens at that time; NULL: no price was known.
    Column("price_input", BigInteger, nullable=True),
    Column("price_output", BigInteger, nullable=True),
    Column("price_cached", BigInteger, nullable=True),
    Column("reserved_input", BigInteger, nullable=False),
    Column("reserved_output", BigInteger, nullable=False),
    Column("reserved_money", BigInteger, nullable=False),
    Column("input_tokens", BigInteger, nullable=True),
    Column("output_tokens", BigInteger, nullable=True),
    Column("cached_tokens", BigInteger, nullable=True),
    #: Micro-units; 0 without a price.
    Column("money", BigInteger, nullable=True),
    #: `ok`, the code of an error, or `lost` where its worker never said.
    Column("outcome", Text, nullable=True),
    at("started_at"),
    at("settled_at", nullable=True),
    CheckConstraint("length(claim_hash) = 32", name="claim"),
    CheckConstraint(
        "(price_input IS NULL) = (price_output IS NULL) AND (price_input IS NULL) = (price_cached IS NULL)",
        name="price",
    ),
    CheckConstraint("reserved_input >= 0 AND reserved_output >= 0 AND reserved_money >= 0", name="reserved"),
    CheckConstraint(
        "(settled_at IS NULL) = (outcome IS NULL) AND (settled_at IS NULL) = (input_tokens IS NULL)"
        " AND (settled_at IS NULL) = (output_tokens IS NULL) AND (settled_at IS NULL) = (cached_tokens IS NULL)"
        " AND (settled_at IS NULL) = (money IS NULL)",
        name="settled",
    ),
    CheckConstraint(
        "settled_at IS NULL OR (input_tokens >= 0 AND output_tokens >= 0 AND cached_tokens >= 0 AND money >= 0)",
        name="used",
    ),
)
_c = model_calls.c
Index("ix_model_calls_open", _c.day, sqlite_where=_c.settled_at.is_(None))
Index(None, _c.started_at)

#: Sums of settled calls. Days that are long past are one row with an empty day, so that totals never fall.
model_usage = Table(
    "model_usage",
    metadata,
    Column("day", Text, nullable=False),
    Column("scope", LargeBinary, nullable=False),
    Column("kind", Text, nullable=False),
    Column("provider", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("calls", BigInteger, nullable=False),
    #: Of these: failed, lost, and without a price.
    Column("failed", BigInteger, nullable=False),
    Column("lost", BigInteger, nullable=False),
    Column("unpriced", BigInteger, nullable=False),
    Column("input_tokens", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
    Column("cached_tokens", BigInteger, nullable=False),
    Column("money", BigInteger, nullable=False),
    PrimaryKeyConstraint("day", "scope", "kind", "provider", "model"),
    sqlite_with_rowid=False,
)

#: What stops calls at present: a person's pause, or a part of the budget that is used up.
model_pauses = Table(
    "model_pauses",
    metadata,
    #: `paused`, or the part of the budget.
    Column("reason", Text, nullable=False),
    #: Where it holds: the empty blob for all, a project's id.
    Column("scope", LargeBinary, nullable=False),
    #: For one kind, or empty for all.
    Column("kind", Text, nullable=False),
    at("since"),
    #: NULL: until a person does something.
    at("until", nullable=True),
    #: A sentence.
    Column("note", Text, nullable=False),
    Column("set_by", Text, nullable=False),
    PrimaryKeyConstraint("reason", "scope", "kind"),
    CheckConstraint("length(CAST(note AS BLOB)) <= 4096", name="note"),
    sqlite_with_rowid=False,
)

#: How often a call was refused, and a job left out, by why.
model_refusals = Table(
    "model_refusals",
    metadata,
    Column("day", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("count", BigInteger, nullable=False),
    PrimaryKeyConstraint("day", "kind", "reason"),
    sqlite_with_rowid=False,
)

#: One row: the budget in force, as the writer last read it.
model_budget = Table(
    "model_budget",
    metadata,
    Column("id", Integer, primary_key=True),
    #: JSON.
    Column("budget", Text, nullable=False),
    at("changed_at"),
    #: Jobs that wait for the budget since before that time are to look again; NULL: none.
    at("free_before", nullable=True),
    CheckConstraint("id = 1", name="one"),
)

"""What the full-text index lacks inside a transaction; the index itself is in `fulltext.py`."""

from __future__ import annotations

from sqlalchemy import CheckConstraint, Column, Integer, Table

from memory_core.store.tables import metadata

#: At most one row, and none outside a transaction: from which observation on nothing is indexed yet.
unindexed_observations = Table(
    "unindexed_observations",
    metadata,
    Column("only", Integer, CheckConstraint("only = 1", name="one_row"), primary_key=True),
    Column("first_seq", Integer, nullable=False),
)

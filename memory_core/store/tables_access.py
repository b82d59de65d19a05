"""Who came upon which page."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, Integer, LargeBinary, PrimaryKeyConstraint, Table, Text

from memory_core.store.columns import at
from memory_core.store.tables import metadata

#: Of each page, each principal that was shown it as a hit: how often, and when last.
page_access = Table(
    "page_access",
    metadata,
    Column("page_id", LargeBinary(16), ForeignKey("pages.id", ondelete="CASCADE"), nullable=False),
    Column("principal", Text, nullable=False),
    Column("count", Integer, nullable=False),
    at("last_at"),
    PrimaryKeyConstraint("page_id", "principal"),
    sqlite_with_rowid=False,
)

"""What full text stands on: the parts of pages, and what the index lacks inside a transaction. The index itself is in `fulltext.py`."""

from __future__ import annotations

from sqlalchemy import CheckConstraint, Column, ForeignKey, Index, Integer, LargeBinary, Table, Text, text

from memory_core.store.tables import metadata, observations

#: The parts by which pages are found: of the latest version of each page that is not tombstoned.
page_chunks = Table(
    "page_chunks",
    metadata,
    #: Never used again: other tables name a part by it.
    Column("number", Integer, primary_key=True),
    Column("page_number", Integer, ForeignKey("pages.number", ondelete="CASCADE"), nullable=False),
    Column("project_number", Integer, nullable=False),
    #: In the order of the text, from 0.
    Column("ord", Integer, nullable=False),
    #: The headings that it stands below.
    Column("heading", Text, nullable=False),
    #: The part is `body[text_start:text_end]`, characters.
    Column("text_start", Integer, nullable=False),
    Column("text_end", Integer, nullable=False),
    #: Of the text that is embedded: title, headings and the part.
    Column("digest", LargeBinary(16), nullable=False),
    sqlite_autoincrement=True,
)
Index(None, page_chunks.c.page_number, page_chunks.c.ord)

#: At most one row, and none outside a transaction: from which observation on nothing is indexed yet.
unindexed_observations = Table(
    "unindexed_observations",
    metadata,
    Column("only", Integer, CheckConstraint("only = 1", name="one_row"), primary_key=True),
    Column("first_seq", Integer, nullable=False),
)

#: Turns by when they were said, as far as their clients told.
Index(
    "ix_observations_turns_occurred",
    observations.c.occurred_at,
    sqlite_where=text("speaker IN ('user','agent') AND body <> '' AND occurred_at IS NOT NULL"),
)
Index(
    "ix_observations_turns_recorded",
    observations.c.recorded_at,
    sqlite_where=text("speaker IN ('user','agent') AND body <> '' AND occurred_at IS NULL"),
)

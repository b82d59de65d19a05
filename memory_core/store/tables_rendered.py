"""Files that are rendered from the tables, and the indexes that rendering asks by."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, Index, LargeBinary, PrimaryKeyConstraint, Table, Text

from memory_core.store.columns import at, row_id
from memory_core.store.tables import metadata, page_versions, pages

rendered_files = Table(
    "rendered_files",
    metadata,
    row_id(),
    Column("project_id", LargeBinary(16), ForeignKey("projects.id", ondelete="CASCADE"), nullable=False),
    #: Relative to the project's directory.
    Column("name", Text, nullable=False),
    #: As last rendered; NULL: not yet.
    Column("content", Text, nullable=True),
    Column("sha256", LargeBinary(32), nullable=True),
    #: When it is to be rendered again; NULL: nothing has changed since.
    at("due_at", nullable=True),
    at("rendered_at", nullable=True),
    PrimaryKeyConstraint("project_id", "name"),
)
Index("ix_rendered_files_due_at", rendered_files.c.due_at, sqlite_where=rendered_files.c.due_at.is_not(None))
Index(None, page_versions.c.project_id, page_versions.c.created_at)
Index(
    "ix_pages_gone",
    pages.c.project_id,
    pages.c.tombstoned_at,
    sqlite_where=pages.c.tombstoned_at.is_not(None),
)

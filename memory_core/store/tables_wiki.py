"""Tables about the wiki's files as people leave them, and about work on the wiki as a whole."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
)

from memory_core.store.columns import at, provenance
from memory_core.store.tables import metadata

#: Files that a commit promised and that are not yet on disk as promised.
file_outbox = Table(
    "file_outbox",
    metadata,
    Column("seq", Integer, primary_key=True),
    *provenance(),
    Column("page_id", LargeBinary(16), nullable=False),
    #: Relative to the wiki root.
    Column("file", Text, nullable=False),
    #: JSON array of hex SHA-256 that may be found there; `absent` for no file.
    Column("expected", Text, nullable=False),
    #: NULL: the file goes away.
    Column("version_id", LargeBinary(16), nullable=True),
    Column("sha256", LargeBinary(32), nullable=True),
    at("created_at"),
    sqlite_autoincrement=True,
)
Index(None, file_outbox.c.file)

#: Each file as it was when it was last read: one that still looks like that is not read again.
wiki_files = Table(
    "wiki_files",
    metadata,
    #: Relative to the wiki root.
    Column("file", Text, primary_key=True),
    Column("project_id", LargeBinary(16), ForeignKey("projects.id", ondelete="CASCADE"), nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("mtime_ns", BigInteger, nullable=False),
    Column("inode", BigInteger, nullable=False),
    Column("sha256", LargeBinary(32), nullable=False),
    #: What is wrong with it, for people; NULL: nothing.
    Column("problem", Text, nullable=True),
    at("seen_at"),
)
Index(None, wiki_files.c.project_id)

#: A rebuild of the tables from the files, or of files from the tables: asked for, resumed after a death, finished.
wiki_tasks = Table(
    "wiki_tasks",
    metadata,
    Column("seq", Integer, primary_key=True),
    Column("kind", Text, CheckConstraint("kind IN ('reindex','heal')", name="kind"), nullable=False),
    #: JSON object.
    Column("options", Text, nullable=False),
    Column("principal", Text, nullable=False),
    at("started_at"),
    at("finished_at", nullable=True),
    #: JSON object of counts, while it runs and when it is done.
    Column("counts", Text, nullable=False),
    sqlite_autoincrement=True,
)

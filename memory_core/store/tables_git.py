"""Tables about the wiki's history: what is to be committed to git, and what was."""

from __future__ import annotations

from sqlalchemy import (
    CheckConstraint,
    Column,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)

from memory_core.store.columns import at
from memory_core.store.tables import metadata

#: One commit each, in their order: closed for further changes when it is made, committed by the writer's thread.
git_batches = Table(
    "git_batches",
    metadata,
    Column("seq", Integer, primary_key=True),
    #: The `Batch-Id` of its commit.
    Column("id", LargeBinary(16), nullable=False, unique=True),
    Column(
        "kind",
        Text,
        CheckConstraint("kind IN ('batch','checkpoint','baseline')", name="kind"),
        nullable=False,
    ),
    #: What the asker of a checkpoint said; empty for the others.
    Column("message", Text, nullable=False),
    #: The newest row of `page_versions` when it was closed: all versions up to it are in it or in one before.
    Column("version_seq", Integer, nullable=False),
    #: Hexadecimal; NULL: not committed yet.
    Column("commit_id", Text, nullable=True),
    #: Files that the commit changed.
    Column("files", Integer, nullable=True),
    at("closed_at"),
    at("committed_at", nullable=True),
    sqlite_autoincrement=True,
)
Index("ix_git_batches_waiting", git_batches.c.seq, sqlite_where=git_batches.c.commit_id.is_(None))

#: Files of pages that changed and are not committed yet, written by triggers on `pages`. Batch 0 is still open.
git_changes = Table(
    "git_changes",
    metadata,
    Column("batch_seq", Integer, nullable=False, server_default=text("0")),
    Column("project_id", LargeBinary(16), nullable=False),
    Column("path", Text, nullable=False),
    #: NULL: the file goes away.
    Column("version_id", LargeBinary(16), nullable=True),
    at("changed_at"),
    PrimaryKeyConstraint("batch_seq", "project_id", "path"),
    sqlite_with_rowid=False,
)

#: However a page changes (a write, an edit from outside, a rename, a deletion), its file is noted.
TRIGGERS = (
    """CREATE TRIGGER pages_came_for_git AFTER INSERT ON pages WHEN new.tombstoned_at IS NULL BEGIN
    INSERT OR REPLACE INTO git_changes(batch_seq, project_id, path, version_id, changed_at)
    VALUES (0, new.project_id, new.path, new.version_id, new.updated_at);
END""",
    """CREATE TRIGGER pages_changed_for_git AFTER UPDATE OF version_id, tombstoned_at, path, project_id ON pages
WHEN old.tombstoned_at IS NULL OR new.tombstoned_at IS NULL BEGIN
    INSERT OR REPLACE INTO git_changes(batch_seq, project_id, path, version_id, changed_at)
    SELECT 0, old.project_id, old.path, NULL, new.updated_at
    WHERE old.project_id IS NOT new.project_id OR old.path IS NOT new.path;
    INSERT OR REPLACE INTO git_changes(batch_seq, project_id, path, version_id, changed_at)
    VALUES (0, new.project_id, new.path, iif(new.tombstoned_at IS NULL, new.version_id, NULL),
        coalesce(new.tombstoned_at, new.updated_at));
END""",
)

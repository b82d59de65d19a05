"""What of the wiki is to be committed to git, and what was."""

from __future__ import annotations

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for statement in _DDL:
        op.get_bind().exec_driver_sql(statement)


_DDL = (
    """CREATE TABLE git_batches (
    seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    id BLOB NOT NULL,
    kind TEXT NOT NULL CONSTRAINT ck_git_batches_kind CHECK (kind IN ('batch','checkpoint','baseline')),
    message TEXT NOT NULL,
    version_seq INTEGER NOT NULL,
    commit_id TEXT,
    files INTEGER,
    closed_at BIGINT NOT NULL,
    committed_at BIGINT,
    CONSTRAINT uq_git_batches_id UNIQUE (id)
)""",
    """CREATE INDEX ix_git_batches_waiting ON git_batches (seq) WHERE commit_id IS NULL""",
    """CREATE TABLE git_changes (
    batch_seq INTEGER DEFAULT 0 NOT NULL,
    project_id BLOB NOT NULL,
    path TEXT NOT NULL,
    version_id BLOB,
    changed_at BIGINT NOT NULL,
    CONSTRAINT pk_git_changes PRIMARY KEY (batch_seq, project_id, path)
)
 WITHOUT ROWID""",
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

"""What was last seen of the wiki's files, and work on the wiki as a whole."""

from __future__ import annotations

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for statement in _DDL.split(";\n\n"):
        op.get_bind().exec_driver_sql(statement)


_DDL = """
CREATE TABLE wiki_files (
    file TEXT NOT NULL,
    project_id BLOB NOT NULL,
    size BIGINT NOT NULL,
    mtime_ns BIGINT NOT NULL,
    inode BIGINT NOT NULL,
    sha256 BLOB NOT NULL,
    problem TEXT,
    seen_at BIGINT NOT NULL,
    CONSTRAINT pk_wiki_files PRIMARY KEY (file),
    CONSTRAINT fk_wiki_files_project_id FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE
);

CREATE INDEX ix_wiki_files_project_id ON wiki_files (project_id);

CREATE TABLE wiki_tasks (
    seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL CONSTRAINT ck_wiki_tasks_kind CHECK (kind IN ('reindex','heal')),
    options TEXT NOT NULL,
    principal TEXT NOT NULL,
    started_at BIGINT NOT NULL,
    finished_at BIGINT,
    counts TEXT NOT NULL
)
"""

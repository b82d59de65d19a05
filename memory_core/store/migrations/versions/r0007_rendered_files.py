"""Files that are rendered from the tables, and the indexes that rendering asks by."""

from __future__ import annotations

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for statement in _DDL.split(";\n\n"):
        op.get_bind().exec_driver_sql(statement)


_DDL = """
CREATE TABLE rendered_files (
    id BLOB NOT NULL,
    project_id BLOB NOT NULL,
    name TEXT NOT NULL,
    content TEXT,
    sha256 BLOB,
    due_at BIGINT,
    rendered_at BIGINT,
    CONSTRAINT pk_rendered_files PRIMARY KEY (project_id, name),
    CONSTRAINT uq_rendered_files_id UNIQUE (id),
    CONSTRAINT fk_rendered_files_project_id FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE
);

CREATE INDEX ix_rendered_files_due_at ON rendered_files (due_at) WHERE due_at IS NOT NULL;

CREATE INDEX ix_pages_gone ON pages (project_id, tombstoned_at) WHERE tombstoned_at IS NOT NULL;

CREATE INDEX ix_page_versions_project_id_created_at ON page_versions (project_id, created_at)
"""

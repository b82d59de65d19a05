"""Links say what their texts say: names and a path. The table was empty until now."""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for statement in _DDL.split(";\n\n"):
        op.get_bind().exec_driver_sql(statement)


_DDL = """
DROP TABLE links;

CREATE TABLE links (
    from_page_id BLOB NOT NULL,
    project_id BLOB NOT NULL,
    to_workspace TEXT NOT NULL,
    to_project TEXT NOT NULL,
    to_path_key TEXT NOT NULL,
    to_path TEXT NOT NULL,
    CONSTRAINT pk_links PRIMARY KEY (from_page_id, to_workspace, to_project, to_path_key),
    CONSTRAINT fk_links_from_page_id FOREIGN KEY(from_page_id) REFERENCES pages (id) ON DELETE CASCADE,
    CONSTRAINT fk_links_project_id FOREIGN KEY(project_id) REFERENCES projects (id) ON DELETE CASCADE
)
 WITHOUT ROWID;

CREATE INDEX ix_links_to_path_key_project_id ON links (to_path_key, project_id)
"""

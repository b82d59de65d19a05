"""Where a project's pages lie when somebody renamed its folder."""

from __future__ import annotations

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

_STATEMENTS = (
    "ALTER TABLE projects ADD COLUMN folder TEXT",
    "ALTER TABLE projects ADD COLUMN earlier_folders TEXT DEFAULT '[]' NOT NULL",
    "CREATE UNIQUE INDEX ix_projects_folder ON projects (folder) WHERE folder IS NOT NULL",
)


def upgrade() -> None:
    for statement in _STATEMENTS:
        op.get_bind().exec_driver_sql(statement)

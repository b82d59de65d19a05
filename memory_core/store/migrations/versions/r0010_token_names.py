"""What people call their access tokens."""

from __future__ import annotations

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.get_bind().exec_driver_sql("ALTER TABLE tokens ADD COLUMN name TEXT DEFAULT '' NOT NULL")

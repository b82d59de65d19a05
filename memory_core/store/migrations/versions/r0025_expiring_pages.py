"""Pages that expire are found without a look at those that do not: every search leaves expired ones out."""

from __future__ import annotations

from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.get_bind().exec_driver_sql(
        "CREATE INDEX ix_pages_expires_at ON pages (expires_at) WHERE expires_at IS NOT NULL"
    )

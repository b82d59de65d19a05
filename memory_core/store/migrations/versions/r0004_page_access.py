"""Who came upon which page."""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.get_bind().exec_driver_sql(_DDL)


_DDL = """
CREATE TABLE page_access (
    page_id BLOB NOT NULL,
    principal TEXT NOT NULL,
    count INTEGER NOT NULL,
    last_at BIGINT NOT NULL,
    CONSTRAINT pk_page_access PRIMARY KEY (page_id, principal),
    CONSTRAINT fk_page_access_page_id FOREIGN KEY(page_id) REFERENCES pages (id) ON DELETE CASCADE
)
 WITHOUT ROWID
"""

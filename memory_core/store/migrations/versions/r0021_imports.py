"""What was brought in from another program's database."""

from __future__ import annotations

from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.get_bind().exec_driver_sql(_DDL)


_DDL = """
CREATE TABLE imports (
    source TEXT NOT NULL,
    kind TEXT NOT NULL,
    id BLOB NOT NULL,
    principal TEXT NOT NULL,
    through INTEGER NOT NULL,
    created_at BIGINT NOT NULL,
    finished_at BIGINT,
    CONSTRAINT pk_imports PRIMARY KEY (source, kind, id),
    CONSTRAINT ck_imports_kind CHECK (kind IN ('session','knowledge')),
    CONSTRAINT ck_imports_through CHECK (through >= 0),
    CONSTRAINT ck_imports_id CHECK (length(id) = 16)
) WITHOUT ROWID
"""

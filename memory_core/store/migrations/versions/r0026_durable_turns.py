"""What was said in durable sessions is found as turns: which sessions have events that are no turns yet."""

from __future__ import annotations

from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    connection = op.get_bind()
    connection.exec_driver_sql(
        "ALTER TABLE durable_sessions ADD COLUMN turns_through INTEGER DEFAULT 0 NOT NULL"
    )
    connection.exec_driver_sql(
        "CREATE INDEX ix_durable_sessions_turns ON durable_sessions (session_id)"
        " WHERE origin = 'client' AND turns_through < last_sequence AND deleted_at IS NULL"
    )

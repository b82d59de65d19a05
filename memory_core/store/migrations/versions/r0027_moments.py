"""Turns by when they were said: a question that asks for days alone is answered by them."""

from __future__ import annotations

from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for name, column, condition in (
        ("occurred", "occurred_at", "IS NOT NULL"),
        ("recorded", "recorded_at", "IS NULL"),
    ):
        op.get_bind().exec_driver_sql(
            f"CREATE INDEX ix_observations_turns_{name} ON observations ({column})"
            f" WHERE speaker IN ('user','agent') AND body <> '' AND occurred_at {condition}"
        )

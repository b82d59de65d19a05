"""Observations are indexed once a transaction, and the segments of their index are joined when there is time."""

from __future__ import annotations

from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for statement in _DDL.split(";\n\n"):
        op.get_bind().exec_driver_sql(statement)


_DDL = """
CREATE TABLE unindexed_observations (
    only INTEGER NOT NULL CONSTRAINT ck_unindexed_observations_one_row CHECK (only = 1),
    first_seq INTEGER NOT NULL,
    CONSTRAINT pk_unindexed_observations PRIMARY KEY (only)
);

DROP TRIGGER observations_came;

DROP TRIGGER observations_go;

CREATE TRIGGER observations_came AFTER INSERT ON observations
WHEN NOT EXISTS (SELECT 1 FROM unindexed_observations) BEGIN
    INSERT INTO unindexed_observations(only, first_seq) VALUES (1, new.seq);
END;

CREATE TRIGGER observations_go BEFORE DELETE ON observations
WHEN NOT EXISTS (SELECT 1 FROM unindexed_observations WHERE first_seq <= old.seq) BEGIN
    INSERT INTO observations_fts(observations_fts, rowid, title, body, command, paths, result, scope)
    SELECT 'delete', old.seq, old.title, old.body, old.command, old.paths, old.result, 'p' || number
    FROM projects WHERE id = old.project_id;
END;

INSERT INTO observations_fts(observations_fts, rank) VALUES ('automerge', 0)
"""

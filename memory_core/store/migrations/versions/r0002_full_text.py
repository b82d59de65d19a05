"""Full-text search over pages and observations."""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for statement in _DDL.split(";\n\n"):
        op.get_bind().exec_driver_sql(statement)


_DDL = """
CREATE VIRTUAL TABLE pages_fts USING fts5(
    title, body, path_search, scope, tokenize = 'unicode61 remove_diacritics 2'
);

CREATE VIEW observations_text AS
SELECT o.seq AS seq, o.title AS title, o.body AS body, o.command AS command, o.paths AS paths,
    o.result AS result, 'p' || p.number AS scope
FROM observations AS o JOIN projects AS p ON p.id = o.project_id;

CREATE VIRTUAL TABLE observations_fts USING fts5(
    title, body, command, paths, result, scope,
    content = 'observations_text', content_rowid = 'seq', tokenize = 'unicode61 remove_diacritics 2'
);

CREATE TRIGGER observations_came AFTER INSERT ON observations BEGIN
    INSERT INTO observations_fts(rowid, title, body, command, paths, result, scope)
    SELECT new.seq, new.title, new.body, new.command, new.paths, new.result, 'p' || number
    FROM projects WHERE id = new.project_id;
END;

CREATE TRIGGER observations_go BEFORE DELETE ON observations BEGIN
    INSERT INTO observations_fts(observations_fts, rowid, title, body, command, paths, result, scope)
    SELECT 'delete', old.seq, old.title, old.body, old.command, old.paths, old.result, 'p' || number
    FROM projects WHERE id = old.project_id;
END;

CREATE TRIGGER projects_go BEFORE DELETE ON projects BEGIN
    DELETE FROM observations WHERE project_id = old.id;
    DELETE FROM pages_fts WHERE rowid IN (SELECT number FROM pages WHERE project_id = old.id);
END
"""

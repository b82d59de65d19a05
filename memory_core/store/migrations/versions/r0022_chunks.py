"""Pages are found by their parts, turns apart from other observations; both by the stems of words."""

from __future__ import annotations

from alembic import op
from sqlalchemy.engine import Connection

from memory_core.domain.chunk import chunks, digest_of, embedded_text
from memory_core.domain.search_words import further_words, words_said

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    connection = op.get_bind()
    for statement in _DDL.split(";\n\n"):
        connection.exec_driver_sql(statement)
    _add_words(connection)
    connection.exec_driver_sql("INSERT INTO observations_fts(observations_fts) VALUES ('rebuild')")
    connection.exec_driver_sql("INSERT INTO observations_fts(observations_fts, rank) VALUES ('automerge', 0)")
    _add_chunks(connection)


def _add_words(connection: Connection) -> None:
    """The further words by which each turn is found."""
    turns = connection.exec_driver_sql(
        "SELECT seq, body FROM observations WHERE speaker IN ('user','agent') AND body <> ''"
    )
    found = [(words, seq) for seq, body in turns if (words := words_said(body)) is not None]
    if found:
        connection.exec_driver_sql("UPDATE observations SET search_words = ? WHERE seq = ?", found)


def _add_chunks(connection: Connection) -> None:
    rows = connection.exec_driver_sql(_PAGES)
    number = 0
    for page_number, project_number, path, title, body in rows:
        for chunk in chunks(body):
            number += 1
            text = body[chunk.start : chunk.end]
            digest = digest_of(embedded_text(title, chunk.heading, text))
            connection.exec_driver_sql(
                "INSERT INTO page_chunks VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    number,
                    page_number,
                    project_number,
                    chunk.ord,
                    chunk.heading,
                    chunk.start,
                    chunk.end,
                    digest,
                ),
            )
            connection.exec_driver_sql(
                "INSERT INTO chunks_fts(rowid, title, heading, body, path_search, scope) VALUES (?, ?, ?, ?, ?, ?)",
                (number, title, chunk.heading, text, further_words(path, title, text), f"p{project_number}"),
            )


_PAGES = """
SELECT pages.number, projects.number, pages.path, v.title, substr(v.content, v.body_start + 1)
FROM pages JOIN page_versions AS v ON v.id = pages.version_id JOIN projects ON projects.id = pages.project_id
WHERE pages.tombstoned_at IS NULL
"""


_DDL = """
CREATE TABLE page_chunks (
    number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    page_number INTEGER NOT NULL,
    project_number INTEGER NOT NULL,
    ord INTEGER NOT NULL,
    heading TEXT NOT NULL,
    text_start INTEGER NOT NULL,
    text_end INTEGER NOT NULL,
    digest BLOB NOT NULL,
    CONSTRAINT fk_page_chunks_page_number FOREIGN KEY(page_number) REFERENCES pages (number) ON DELETE CASCADE
);

CREATE INDEX ix_page_chunks_page_number_ord ON page_chunks (page_number, ord);

DROP TRIGGER projects_go;

DROP TRIGGER observations_go;

DROP TABLE pages_fts;

DROP TABLE observations_fts;

DROP VIEW observations_text;

ALTER TABLE observations ADD COLUMN speaker_name TEXT;

ALTER TABLE observations ADD COLUMN search_words TEXT;

CREATE INDEX ix_observations_turns ON observations (session_id, seq) WHERE speaker IN ('user','agent') AND body <> '';

CREATE VIRTUAL TABLE chunks_fts USING fts5(
    title, heading, body, path_search, scope,
    content = '', contentless_delete = 1, tokenize = 'porter unicode61 remove_diacritics 2'
);

CREATE TRIGGER page_chunks_go AFTER DELETE ON page_chunks BEGIN
    DELETE FROM chunks_fts WHERE rowid = old.number;
END;

CREATE VIEW observations_text AS
SELECT o.seq AS seq,
    CASE WHEN o.speaker IN ('user','agent') AND o.body <> ''
        THEN coalesce(o.speaker_name || ' ', '') || coalesce(o.search_words, '')
            || CASE WHEN instr(o.body, rtrim(o.title, '…')) THEN '' ELSE ' ' || o.title END
        ELSE o.title || coalesce(' ' || o.search_words, '') END AS title,
    o.body AS body, o.command AS command, o.paths AS paths, o.result AS result,
    CASE WHEN o.speaker IN ('user','agent') AND o.body <> ''
        THEN 'p' || p.number || ' t' || p.number ELSE 'p' || p.number END AS scope
FROM observations AS o JOIN projects AS p ON p.id = o.project_id;

CREATE VIRTUAL TABLE observations_fts USING fts5(
    title, body, command, paths, result, scope,
    content = 'observations_text', content_rowid = 'seq', tokenize = 'porter unicode61 remove_diacritics 2'
);

CREATE TRIGGER observations_go BEFORE DELETE ON observations
WHEN NOT EXISTS (SELECT 1 FROM unindexed_observations WHERE first_seq <= old.seq) BEGIN
    INSERT INTO observations_fts(observations_fts, rowid, title, body, command, paths, result, scope)
    SELECT 'delete', seq, title, body, command, paths, result, scope FROM observations_text WHERE seq = old.seq;
END;

CREATE TRIGGER projects_go BEFORE DELETE ON projects BEGIN
    DELETE FROM observations WHERE project_id = old.id;
END
"""

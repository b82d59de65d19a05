"""The full-text tables: which columns they have and how they are kept. Questions to them stand elsewhere.

Both are FTS5 with the tokenizer `unicode61 remove_diacritics 2` ("cafe" finds "café"). The column
`scope` holds the project's token, `p<projects.number>`: ask `scope : p42 AND (…)` instead of joining,
because the cost of a match is the number of rows that it touches. Give `scope` the weight 0 in `bm25`.

`pages_fts(title, body, path_search, scope)`: rowid = `pages.number`, one row per page with a latest
version that is not tombstoned. It keeps its own text (`snippet` works); who writes a page writes its row:
`DELETE` by rowid, then `INSERT`.

`observations_fts(title, body, command, paths, result, scope)`: rowid = `observations.seq`; its text is that of
the view `observations_text` (`snippet` works). Triggers note what came and take out what goes. What came is
indexed in one statement just before its transaction commits (`WriterConnection.commit`): row by row it took twice as
long. Nor are its segments merged at each insert, but when nothing else is to do (`MERGE`).
"""

from __future__ import annotations

TOKENIZER = "unicode61 remove_diacritics 2"

_PAGES = f"""CREATE VIRTUAL TABLE pages_fts USING fts5(
    title, body, path_search, scope, tokenize = '{TOKENIZER}'
)"""

_TEXT_OF_OBSERVATIONS = """CREATE VIEW observations_text AS
SELECT o.seq AS seq, o.title AS title, o.body AS body, o.command AS command, o.paths AS paths,
    o.result AS result, 'p' || p.number AS scope
FROM observations AS o JOIN projects AS p ON p.id = o.project_id"""

_OBSERVATIONS = f"""CREATE VIRTUAL TABLE observations_fts USING fts5(
    title, body, command, paths, result, scope,
    content = 'observations_text', content_rowid = 'seq', tokenize = '{TOKENIZER}'
)"""

_OBSERVATION_CAME = """CREATE TRIGGER observations_came AFTER INSERT ON observations
WHEN NOT EXISTS (SELECT 1 FROM unindexed_observations) BEGIN
    INSERT INTO unindexed_observations(only, first_seq) VALUES (1, new.seq);
END"""

# What is not in the index must not be taken out of it: that would damage the index.
_OBSERVATION_GOES = """CREATE TRIGGER observations_go BEFORE DELETE ON observations
WHEN NOT EXISTS (SELECT 1 FROM unindexed_observations WHERE first_seq <= old.seq) BEGIN
    INSERT INTO observations_fts(observations_fts, rowid, title, body, command, paths, result, scope)
    SELECT 'delete', old.seq, old.title, old.body, old.command, old.paths, old.result, 'p' || number
    FROM projects WHERE id = old.project_id;
END"""

# A cascade deletes the project before its observations, and then nobody knows the token that their
# full-text rows were written with; so they go first, and their trigger still finds it.
_PROJECT_GOES = """CREATE TRIGGER projects_go BEFORE DELETE ON projects BEGIN
    DELETE FROM observations WHERE project_id = old.id;
    DELETE FROM pages_fts WHERE rowid IN (SELECT number FROM pages WHERE project_id = old.id);
END"""

#: In the order in which they are made.
DDL = (_PAGES, _TEXT_OF_OBSERVATIONS, _OBSERVATIONS, _OBSERVATION_CAME, _OBSERVATION_GOES, _PROJECT_GOES)

#: Whether there is anything for the next two, which together index what came.
UNINDEXED = "SELECT 1 FROM unindexed_observations"
INDEX_NEW = """INSERT INTO observations_fts(rowid, title, body, command, paths, result, scope)
SELECT o.seq, o.title, o.body, o.command, o.paths, o.result, 'p' || p.number
FROM observations AS o JOIN projects AS p ON p.id = o.project_id
WHERE o.seq >= (SELECT first_seq FROM unindexed_observations)"""
ALL_INDEXED = "DELETE FROM unindexed_observations"
#: Joins segments of the index, about so many of its pages; changes fewer than two rows when there is nothing to join.
MERGE = "INSERT INTO observations_fts(observations_fts, rank) VALUES ('merge', ?)"


def scope_token(project_number: int) -> str:
    """The word that stands for a project in the column `scope`."""
    return f"p{project_number}"

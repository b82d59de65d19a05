"""The full-text tables: which columns they have and how they are kept. Questions to them stand elsewhere.

Both are FTS5 with the tokenizer `porter unicode61 remove_diacritics 2` ("cafe" finds "café", "running" finds "run"). The
column `scope` holds the project's token, `p<projects.number>`: ask `scope : p42 AND (…)` instead of joining, because the
cost of a match is the number of rows that it touches.

`chunks_fts(title, heading, body, path_search, scope)`: rowid = `page_chunks.number`. It keeps no text of its own: that is a
slice of the page. Who writes a page writes its chunks (`store/page_chunks.py`); a trigger takes out what goes.

`observations_fts(title, body, command, paths, result, scope)`: rowid = `observations.seq`; its text is that of the view
`observations_text`. A turn, which is what a user or an agent said, has the token `t42` beside `p42`. The title of a turn is
mostly how its text begins and then counts once; who said it and further words (`domain/search_words.py`) stand there instead.
Triggers note what came and take out what goes. What came is indexed in one statement just before its transaction
commits (`WriterConnection.commit`): row by row it took twice as long. Nor are its segments merged at each insert, but when
nothing else is to do (`MERGE`).
"""

from __future__ import annotations

TOKENIZER = "porter unicode61 remove_diacritics 2"
#: What makes an observation a turn; the index `ix_observations_turns` has the same words.
IS_TURN = "speaker IN ('user','agent') AND body <> ''"
#: Of an observation `o`. Its rows go in slices, and nobody sees the session from the first one on; hardly ever is there one.
IN_NO_DELETED_SESSION = (
    "o.session_id NOT IN (SELECT d.session_id FROM durable_sessions AS d WHERE d.deleted_at IS NOT NULL)"
)

_CHUNKS = f"""CREATE VIRTUAL TABLE chunks_fts USING fts5(
    title, heading, body, path_search, scope,
    content = '', contentless_delete = 1, tokenize = '{TOKENIZER}'
)"""

_CHUNK_GOES = """CREATE TRIGGER page_chunks_go AFTER DELETE ON page_chunks BEGIN
    DELETE FROM chunks_fts WHERE rowid = old.number;
END"""

_TEXT_OF_OBSERVATIONS = """CREATE VIEW observations_text AS
SELECT o.seq AS seq,
    CASE WHEN o.speaker IN ('user','agent') AND o.body <> ''
        THEN coalesce(o.speaker_name || ' ', '') || coalesce(o.search_words, '')
            || CASE WHEN instr(o.body, rtrim(o.title, '…')) THEN '' ELSE ' ' || o.title END
        ELSE o.title || coalesce(' ' || o.search_words, '') END AS title,
    o.body AS body, o.command AS command, o.paths AS paths, o.result AS result,
    CASE WHEN o.speaker IN ('user','agent') AND o.body <> ''
        THEN 'p' || p.number || ' t' || p.number ELSE 'p' || p.number END AS scope
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
    SELECT 'delete', seq, title, body, command, paths, result, scope FROM observations_text WHERE seq = old.seq;
END"""

# A cascade deletes the project before its observations, and then nobody knows the token that their
# full-text rows were written with; so they go first, and their trigger still finds it.
_PROJECT_GOES = """CREATE TRIGGER projects_go BEFORE DELETE ON projects BEGIN
    DELETE FROM observations WHERE project_id = old.id;
END"""

#: In the order in which they are made.
DDL = (
    _CHUNKS,
    _CHUNK_GOES,
    _TEXT_OF_OBSERVATIONS,
    _OBSERVATIONS,
    _OBSERVATION_CAME,
    _OBSERVATION_GOES,
    _PROJECT_GOES,
)

#: Whether there is anything for the next two, which together index what came.
UNINDEXED = "SELECT 1 FROM unindexed_observations"
INDEX_NEW = """INSERT INTO observations_fts(rowid, title, body, command, paths, result, scope)
SELECT seq, title, body, command, paths, result, scope FROM observations_text
WHERE seq >= (SELECT first_seq FROM unindexed_observations)"""
ALL_INDEXED = "DELETE FROM unindexed_observations"
#: Joins segments of the index, about so many of its pages; changes fewer than two rows when there is nothing to join.
MERGE = "INSERT INTO observations_fts(observations_fts, rank) VALUES ('merge', ?)"


def scope_token(project_number: int) -> str:
    """The word that stands for a project in the column `scope`."""
    return f"p{project_number}"


def turns_token(project_number: int) -> str:
    """The word that stands for the turns of a project in the column `scope` of observations."""
    return f"t{project_number}"

"""What the lexical stream asks the full-text tables, and the texts and facts of units.

A match holds the scope: nothing outside it is looked at. Rows are not ranked here: `bm25()` counts the rows of each word
in all projects, weighs a row by the length of all its columns, and has its parameters fixed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from memory_core.store.fulltext import IN_NO_DELETED_SESSION, IS_TURN, scope_token, turns_token
from memory_core.store.statement import Row, Statement, text_statement
from memory_core.store.transaction import Reading

_CHUNK_COLUMNS = "{title heading body path_search}"
_TURN_COLUMNS = "{title body}"
#: Parts of pages that nobody is shown; of tombstoned pages there are none. Mostly there is no such page at all.
_NOT_EXPIRED = (
    "(NOT EXISTS (SELECT 1 FROM pages WHERE expires_at <= :now) OR f.rowid NOT IN (SELECT c.number FROM pages AS p"
    " CROSS JOIN page_chunks AS c ON c.page_number = p.number WHERE p.expires_at <= :now))"
)
#: Turns that somebody may be shown: shared ones and his own, and none of a session that is being deleted.
_VISIBLE = f"(o.owner IS NULL OR o.owner = :owner) AND {IN_NO_DELETED_SESSION}"


# Many numbers come as one JSON value: a row of each took three times as long. The index gives the oldest first at two thirds of
# what the other way round costs.
def _chunks(order: str = "") -> Statement:
    return text_statement(
        "SELECT json_group_array(number) AS numbers FROM (SELECT f.rowid AS number FROM chunks_fts AS f"
        f" WHERE chunks_fts MATCH :match AND {_NOT_EXPIRED} {order} LIMIT :limit)"
    )


def _turns(order: str = "") -> Statement:
    return text_statement(
        "SELECT session_id, json_group_array(number) AS numbers FROM (SELECT o.seq AS number, o.session_id AS session_id"
        " FROM observations_fts AS f CROSS JOIN observations AS o ON o.seq = f.rowid"
        f" WHERE observations_fts MATCH :match AND o.speaker IN ('user','agent') AND {_VISIBLE} {order} LIMIT :limit)"
        " GROUP BY session_id"
    )


_NEWEST_FIRST = "ORDER BY f.rowid DESC"
_CHUNKS, _NEWEST_CHUNKS = _chunks(), _chunks(_NEWEST_FIRST)
_TURNS, _NEWEST_TURNS = _turns(), _turns(_NEWEST_FIRST)
_PAGES_OF = text_statement(
    "SELECT json_group_array(c.number) AS numbers, json_group_array(c.page_number) AS pages"
    " FROM json_each(:numbers) AS asked CROSS JOIN page_chunks AS c ON c.number = asked.value"
)
_COUNT_CHUNKS = text_statement(
    "SELECT count(*) AS found FROM (SELECT 1 FROM chunks_fts WHERE chunks_fts MATCH :match LIMIT :at_most)"
)
_COUNT_TURNS = text_statement(
    "SELECT count(*) AS found FROM (SELECT 1 FROM observations_fts WHERE observations_fts MATCH :match LIMIT :at_most)"
)
_ALL_CHUNKS = text_statement("SELECT count(*) AS found FROM (SELECT 1 FROM page_chunks LIMIT :at_most)")
_ALL_TURNS = text_statement(
    "SELECT count(*) AS found FROM (SELECT 1 FROM observations INDEXED BY ix_observations_turns"
    f" WHERE {IS_TURN} LIMIT :at_most)"
)


def _next(direction: str, order: str, offset: int) -> str:
    return (
        "(SELECT n.seq FROM observations AS n INDEXED BY ix_observations_turns WHERE n.session_id = o.session_id"
        f" AND n.speaker IN ('user','agent') AND n.body <> '' AND n.seq {direction} o.seq"
        f" ORDER BY n.seq {order} LIMIT 1 OFFSET {offset})"
    )


_NEIGHBOURS = text_statement(
    f"SELECT o.seq, {_next('<', 'DESC', 0)} AS before_1, {_next('<', 'DESC', 1)} AS before_2,"
    f" {_next('>', 'ASC', 0)} AS after_1, {_next('>', 'ASC', 1)} AS after_2"
    " FROM json_each(:numbers) AS asked JOIN observations AS o ON o.seq = asked.value"
)
_FACTS_OF_TURNS = text_statement(
    "SELECT o.seq AS number, o.session_id, o.speaker, o.speaker_name, coalesce(o.occurred_at, o.recorded_at) AS at,"
    " substr(o.body, -3) AS tail FROM json_each(:numbers) AS asked JOIN observations AS o ON o.seq = asked.value"
)
_TEXTS_OF_TURNS = text_statement(
    "SELECT o.seq AS number, o.body AS text FROM json_each(:numbers) AS asked JOIN observations AS o ON o.seq = asked.value"
)
_TEXTS_OF_CHUNKS = text_statement(
    "SELECT c.number, c.heading, v.title, p.updated_at AS at,"
    " substr(v.content, v.body_start + c.text_start + 1, c.text_end - c.text_start) AS text"
    " FROM json_each(:numbers) AS asked JOIN page_chunks AS c ON c.number = asked.value"
    " JOIN pages AS p ON p.number = c.page_number JOIN page_versions AS v ON v.id = p.version_id"
)


def _match(expression: str, columns: str, scopes: Sequence[str] | None) -> str:
    asked = f"({columns} : ({expression}))"
    return asked if scopes is None else f"{_in(scopes)} AND {asked}"


def _in(scopes: Sequence[str]) -> str:
    names = " OR ".join(f'"{scope}"' for scope in scopes)
    return f"(scope : ({names}))"


def _chunk_scopes(projects: Sequence[int] | None) -> list[str] | None:
    return None if projects is None else [scope_token(number) for number in projects]


def _turn_scopes(projects: Sequence[int] | None) -> list[str] | None:
    return None if projects is None else [turns_token(number) for number in projects]


def chunks_with(
    reading: Reading,
    expression: str,
    projects: Sequence[int] | None,
    *,
    now: int,
    limit: int,
    newest: bool = False,
) -> list[int]:
    """Parts of pages that match, of these projects (None: of all); the newest where there are more than `limit`, if that is asked
    for, else any. Pages that expired by `now` have none."""
    match = _match(expression, _CHUNK_COLUMNS, _chunk_scopes(projects))
    row: Any = reading.row(_NEWEST_CHUNKS if newest else _CHUNKS, match=match, now=now, limit=limit)
    return json.loads(row["numbers"])


def turns_with(
    reading: Reading,
    expression: str,
    projects: Sequence[int] | None,
    *,
    owner: str,
    limit: int,
    newest: bool = False,
) -> dict[int, bytes]:
    """Turns that match, with their sessions, of these projects (None: of all), shared or `owner`'s; the newest where there are more
    than `limit`, if that is asked for, else any."""
    match = _match(expression, _TURN_COLUMNS, _turn_scopes(projects))
    rows = reading.rows(_NEWEST_TURNS if newest else _TURNS, match=match, owner=owner, limit=limit)
    return {number: row["session_id"] for row in rows for number in json.loads(row["numbers"])}


def pages_of_chunks(reading: Reading, numbers: Sequence[int]) -> dict[int, int]:
    """The numbers of their pages."""
    row: Any = reading.row(_PAGES_OF, numbers=json.dumps(numbers))
    return dict(zip(json.loads(row["numbers"]), json.loads(row["pages"]), strict=True))


def count_chunks(reading: Reading, projects: Sequence[int] | None, *, at_most: int) -> int:
    """How many parts of pages these projects have, counted up to `at_most`."""
    if projects is None:
        return _found(reading.row(_ALL_CHUNKS, at_most=at_most))
    scopes = _chunk_scopes(projects) or []
    return _found(reading.row(_COUNT_CHUNKS, match=_in(scopes), at_most=at_most)) if scopes else 0


def count_turns(reading: Reading, projects: Sequence[int] | None, *, at_most: int) -> int:
    """How many turns these projects have, counted up to `at_most`."""
    if projects is None:
        return _found(reading.row(_ALL_TURNS, at_most=at_most))
    scopes = _turn_scopes(projects) or []
    return _found(reading.row(_COUNT_TURNS, match=_in(scopes), at_most=at_most)) if scopes else 0


def neighbours(reading: Reading, numbers: Iterable[int]) -> dict[int, tuple[int | None, ...]]:
    """Of each turn the two before it and the two behind it in its session, the nearer first: before, before that, behind, behind that."""
    rows = reading.rows(_NEIGHBOURS, numbers=json.dumps(list(numbers)))
    return {row["seq"]: (row["before_1"], row["before_2"], row["after_1"], row["after_2"]) for row in rows}


def facts_of_turns(reading: Reading, numbers: Iterable[int]) -> dict[int, Row]:
    """number, session_id, speaker, speaker_name, at (UTC microseconds) and tail (its last characters) of turns."""
    return _by_number(reading.rows(_FACTS_OF_TURNS, numbers=json.dumps(list(numbers))))


def texts_of_turns(reading: Reading, numbers: Iterable[int]) -> dict[int, str]:
    rows = reading.rows(_TEXTS_OF_TURNS, numbers=json.dumps(list(numbers)))
    return {row["number"]: row["text"] for row in rows}


def texts_of_chunks(reading: Reading, numbers: Iterable[int]) -> dict[int, Row]:
    """number, heading, title, at (UTC microseconds) and text of parts of pages."""
    return _by_number(reading.rows(_TEXTS_OF_CHUNKS, numbers=json.dumps(list(numbers))))


def _by_number(rows: list[Row]) -> dict[int, Row]:
    return {row["number"]: row for row in rows}


def _found(row: Any) -> int:
    return row["found"]

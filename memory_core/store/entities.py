"""What pages name, kept by who writes pages, and asked by the beginnings of words."""

from __future__ import annotations

import json
from collections.abc import Sequence

from memory_core import limits
from memory_core.domain.entities import Entity
from memory_core.store.shown import SCOPE, shown
from memory_core.store.statement import Row, text_statement
from memory_core.store.transaction import Reading, Transaction

_KNOWN = text_statement(
    "SELECT e.name, e.number FROM json_each(:names) AS asked"
    " CROSS JOIN entities AS e ON e.project_number = :project_number AND e.name = asked.value"
)
_ADD = text_statement("INSERT INTO entities(project_number, name) VALUES (:project_number, :name)")
_ADD_START = text_statement(
    "INSERT INTO entity_starts(project_number, start, entity_number) VALUES (:project_number, :start, :number)"
)
_OF_PAGE = text_statement("SELECT entity_number FROM page_entities WHERE page_number = :page_number")
_NAME = text_statement(
    "INSERT INTO page_entities(entity_number, page_number, text_at) VALUES (:number, :page_number, :text_at)"
)
_DROP = text_statement("DELETE FROM page_entities WHERE page_number = :page_number")
#: Those of some names that no page says any more; what hangs on them goes with them.
_FORGET = text_statement(
    "DELETE FROM entities WHERE number IN (SELECT value FROM json_each(:numbers))"
    " AND NOT EXISTS (SELECT 1 FROM page_entities WHERE entity_number = entities.number)"
)


def write(tx: Transaction, *, page_number: int, project_number: int, named: Sequence[Entity]) -> None:
    """Make `named` (each name once) all that a page names."""
    before = [row["entity_number"] for row in tx.rows(_OF_PAGE, page_number=page_number)]
    if before:
        tx.run(_DROP, page_number=page_number)
    if named:
        numbers = _numbers(tx, project_number, named)
        tx.run_many(
            _NAME,
            [
                {"number": numbers[entity.name], "page_number": page_number, "text_at": entity.at}
                for entity in named
            ],
        )
    if before:
        tx.run(_FORGET, numbers=json.dumps(before))


def _numbers(tx: Transaction, project_number: int, named: Sequence[Entity]) -> dict[str, int]:
    """The number of each name; those that are new get one."""
    known = _known(tx, project_number, named)
    new = [entity for entity in named if entity.name not in known]
    if not new:
        return known
    tx.run_many(_ADD, [{"project_number": project_number, "name": entity.name} for entity in new])
    known |= _known(tx, project_number, new)
    tx.run_many(
        _ADD_START,
        [
            {"project_number": project_number, "start": start, "number": known[entity.name]}
            for entity in new
            for start in entity.starts
        ],
    )
    return known


def _known(tx: Transaction, project_number: int, named: Sequence[Entity]) -> dict[str, int]:
    names = json.dumps([entity.name for entity in named])
    rows = tx.rows(_KNOWN, project_number=project_number, names=names)
    return {row["name"]: row["number"] for row in rows}


def drop(tx: Transaction, page_number: int) -> None:
    """A page names nothing any more."""
    write(tx, page_number=page_number, project_number=0, named=())


# --- asking --------------------------------------------------------------------------------------

#: Names with a word that begins with what is asked, the most like it first, and on how many pages each stands (counted up to a
#: bound). Of a beginning that very many names have, those are taken that end with it.
_NAMES = text_statement(
    f"""
WITH {SCOPE},
asked(token) AS (SELECT value FROM json_each(:tokens)),
bounded(token, until) AS MATERIALIZED (
    SELECT a.token, CASE WHEN {limits.ENTITY_STARTS_COMMON} < (SELECT count(*) FROM (
        SELECT 1 FROM scope CROSS JOIN entity_starts AS s
            ON s.project_number = scope.number AND s.start >= a.token AND s.start < a.token || char(1114111)
        LIMIT {limits.ENTITY_STARTS_COMMON + 1})) THEN a.token || ' ' ELSE a.token || char(1114111) END
    FROM asked AS a
),
matched AS (
    SELECT s.entity_number AS number, a.token AS token
    FROM scope CROSS JOIN bounded AS a CROSS JOIN entity_starts AS s
        ON s.project_number = scope.number AND s.start >= a.token AND s.start < a.until
    GROUP BY s.entity_number, a.token
),
near AS MATERIALIZED (
    SELECT m.number, min(1.0, sum(length(m.token)) * 1.0 / length(e.name)) AS likeness
    FROM matched AS m JOIN entities AS e ON e.number = m.number
    GROUP BY m.number ORDER BY likeness DESC, length(e.name), m.number LIMIT {limits.ENTITIES_MATCHED_MAX}
)
SELECT number, likeness, (SELECT count(*) FROM (
    SELECT 1 FROM page_entities WHERE entity_number = near.number LIMIT {limits.ENTITY_PAGES_COMMON + 1})) AS pages
FROM near"""
)
#: The pages that say names, given with their weights; of a page that says several, the part where it says the weightiest.
_PAGES = text_statement(
    f"""
WITH named(number, weight) AS MATERIALIZED (
    SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(:named)
),
found AS (
    SELECT n.page_number, sum(c.weight) AS weight, max(c.weight) AS most, n.text_at
    FROM named AS c CROSS JOIN page_entities AS n ON n.entity_number = c.number
        CROSS JOIN pages AS p ON p.number = n.page_number
    WHERE {shown()}
    GROUP BY n.page_number ORDER BY weight DESC, count(*) DESC, p.path_key, n.page_number LIMIT :limit
)
SELECT f.page_number, f.weight, coalesce(
    (SELECT number FROM page_chunks WHERE page_number = f.page_number AND text_start <= f.text_at ORDER BY ord DESC LIMIT 1),
    (SELECT number FROM page_chunks WHERE page_number = f.page_number ORDER BY ord LIMIT 1)) AS chunk_number
FROM found AS f ORDER BY f.weight DESC, f.page_number"""
)


def candidates(
    reading: Reading,
    tokens: Sequence[str],
    project_numbers: Sequence[int] | None,
    *,
    now: int | None,
    limit: int,
) -> list[Row]:
    """The pages of these projects (None: of all) that name something with a word that begins like one of `tokens`:
    page_number, chunk_number (the part that says it), weight (higher is better). Expired ones only without `now`.

    A name's weight is the share of its letters that is asked for, over the number of pages that say it; a name on more than
    `ENTITY_PAGES_COMMON` pages only answers when no rarer one does."""
    names = (
        reading.rows(
            _NAMES,
            tokens=json.dumps(tokens),
            projects=None if project_numbers is None else json.dumps(list(project_numbers)),
        )
        if tokens
        else []
    )
    rare = [row for row in names if row["pages"] <= limits.ENTITY_PAGES_COMMON]
    rows = _pages(reading, rare, now=now, limit=limit)
    if rows or len(rare) == len(names):
        return rows
    return _pages(reading, names, now=now, limit=limit)


def _pages(reading: Reading, names: Sequence[Row], *, now: int | None, limit: int) -> list[Row]:
    if not names:
        return []
    # A name that is said no more goes with the last page that said it; in between it has no page.
    weights = [(row["number"], row["likeness"] / max(row["pages"], 1)) for row in names]
    return reading.rows(_PAGES, named=json.dumps(weights), now=now, limit=limit)

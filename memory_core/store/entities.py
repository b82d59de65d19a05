"""What pages name, kept by who writes pages, and asked by the beginnings of words."""

from __future__ import annotations

import json
from collections.abc import Sequence

from memory_core import limits
from memory_core.domain.entities import Entity
from memory_core.store.shown import SCOPE, shown
from memory_core.store.statement import Row, text_statement
from memory_core.store.transaction import Reading, Transaction

_ADD = text_statement(
    "INSERT OR IGNORE INTO entities(project_number, name)"
    " SELECT :project_number, json_extract(value, '$[0]') FROM json_each(:named)"
)
_ADD_STARTS = text_statement(
    "INSERT OR IGNORE INTO entity_starts(project_number, start, entity_number)"
    " SELECT :project_number, starts.value, e.number FROM json_each(:named) AS named"
    " JOIN entities AS e ON e.project_number = :project_number AND e.name = json_extract(named.value, '$[0]')"
    " JOIN json_each(named.value, '$[2]') AS starts"
)
_NAME = text_statement(
    "INSERT INTO page_entities(entity_number, page_number, text_at)"
    " SELECT e.number, :page_number, json_extract(named.value, '$[1]') FROM json_each(:named) AS named"
    " JOIN entities AS e ON e.project_number = :project_number AND e.name = json_extract(named.value, '$[0]')"
)
_NUMBERS = text_statement("SELECT entity_number FROM page_entities WHERE page_number = :page_number")
_DROP = text_statement("DELETE FROM page_entities WHERE page_number = :page_number")
#: Those of some names that no page says any more; what hangs on them goes with them.
_FORGET = text_statement(
    "DELETE FROM entities WHERE number IN (SELECT value FROM json_each(:numbers))"
    " AND NOT EXISTS (SELECT 1 FROM page_entities WHERE entity_number = entities.number)"
)


def write(tx: Transaction, *, page_number: int, project_number: int, named: Sequence[Entity]) -> None:
    """Make `named` (each name once) all that a page names."""
    before = [row["entity_number"] for row in tx.rows(_NUMBERS, page_number=page_number)]
    if before:
        tx.run(_DROP, page_number=page_number)
    if named:
        said = json.dumps([(entity.name, entity.at, entity.starts) for entity in named])
        if tx.run(_ADD, project_number=project_number, named=said):
            tx.run(_ADD_STARTS, project_number=project_number, named=said)
        tx.run(_NAME, project_number=project_number, page_number=page_number, named=said)
    if before:
        tx.run(_FORGET, numbers=json.dumps(before))


def drop(tx: Transaction, page_number: int) -> None:
    """A page names nothing any more."""
    write(tx, page_number=page_number, project_number=0, named=())


# --- asking --------------------------------------------------------------------------------------

#: Names with a word that begins with what is asked, the most like it first. A name's weight is the share of its letters
#: that is asked for, over the number of pages that name it (counted up to a bound: a name on more pages tells little).
_WEIGHED = f"""
WITH {SCOPE},
asked(token) AS (SELECT value FROM json_each(:tokens)),
matched AS (
    SELECT s.entity_number AS number, a.token AS token
    FROM scope CROSS JOIN asked AS a CROSS JOIN entity_starts AS s
        ON s.project_number = scope.number AND s.start >= a.token AND s.start < a.token || char(1114111)
    GROUP BY s.entity_number, a.token
),
near AS MATERIALIZED (
    SELECT m.number, min(1.0, sum(length(m.token)) * 1.0 / length(e.name)) AS likeness
    FROM matched AS m JOIN entities AS e ON e.number = m.number
    GROUP BY m.number ORDER BY likeness DESC, length(e.name), m.number LIMIT {limits.ENTITIES_MATCHED_MAX}
),
counted AS MATERIALIZED (
    SELECT number, likeness,
        (SELECT count(*) FROM (SELECT 1 FROM page_entities WHERE entity_number = near.number LIMIT :common + 1)) AS df
    FROM near
)"""
#: Of a page named by several, the part where it says the weightiest.
_CANDIDATES = text_statement(
    _WEIGHED
    + f""",
found AS (
    SELECT n.page_number, sum(c.likeness / c.df) AS weight, max(c.likeness / c.df) AS most, n.text_at
    FROM counted AS c CROSS JOIN page_entities AS n ON n.entity_number = c.number
        CROSS JOIN pages AS p ON p.number = n.page_number
    WHERE c.df <= :common AND {shown()}
    GROUP BY n.page_number ORDER BY weight DESC, count(*) DESC, p.path_key, n.page_number LIMIT :limit
)
SELECT f.page_number, f.weight, coalesce(
    (SELECT number FROM page_chunks WHERE page_number = f.page_number AND text_start <= f.text_at ORDER BY ord DESC LIMIT 1),
    (SELECT number FROM page_chunks WHERE page_number = f.page_number ORDER BY ord LIMIT 1)) AS chunk_number
FROM found AS f ORDER BY f.weight DESC, f.page_number"""
)
#: Enough for any page of a name that is on most of them.
_ANY = 1_000_000


def candidates(
    reading: Reading,
    tokens: Sequence[str],
    project_numbers: Sequence[int] | None,
    *,
    now: int | None,
    limit: int,
) -> list[Row]:
    """The pages of these projects (None: of all) that name something with a word that begins like one of `tokens`:
    page_number, chunk_number (the part that says it), weight (higher is better). Expired ones only without `now`."""
    if not tokens:
        return []
    asked = {
        "tokens": json.dumps(tokens),
        "projects": None if project_numbers is None else json.dumps(list(project_numbers)),
        "now": now,
        "limit": limit,
    }
    rows = reading.rows(_CANDIDATES, common=limits.ENTITY_PAGES_COMMON, **asked)
    return rows or reading.rows(_CANDIDATES, common=_ANY, **asked)

"""What lies near a page: pages that it points to, that point to it, and that name the same rare thing."""

from __future__ import annotations

import json
from collections.abc import Sequence

from memory_core import limits
from memory_core.store.shown import SCOPE, shown
from memory_core.store.statement import Row, text_statement
from memory_core.store.transaction import Reading

#: What is left of a page's weight one step on: where it points, what points to it, what names the same.
_OUT, _IN, _SHARED = 0.5, 0.45, 0.4
#: A page that is left less than this of the best seed's weight is not gone to. Where pages share many names, nearly all of a
#: walk was among such pages, and none of them came among the first twenty.
_WEIGHT_MIN = 0.02


def _step(share: str, ends: str) -> str:
    """A step from each page `a` of the walk to pages `p` that it has not come through."""
    return f"""
    SELECT p.number, w.depth + 1, w.weight * {share}, w.trail || p.number || ','
    FROM walk AS w CROSS JOIN pages AS a ON a.number = w.page_number {ends}
    WHERE w.depth < :depth AND w.weight * {share} >= {_WEIGHT_MIN} AND instr(w.trail, ',' || p.number || ',') = 0
        AND {shown()} AND p.project_id IN (SELECT id FROM scope)"""


_POINTED_TO = _step(
    f"{_OUT}",
    """
        CROSS JOIN (SELECT from_page_id, project_id, to_workspace, to_project, to_path_key FROM links) AS l
            ON l.from_page_id = a.id
        CROSS JOIN pages AS p ON p.path_key = l.to_path_key AND p.tombstoned_at IS NULL AND p.project_id =
            CASE l.to_project WHEN '' THEN l.project_id
            ELSE (SELECT id FROM scope WHERE name = l.to_project AND workspace = l.to_workspace) END""",
)
_POINTING = _step(
    f"{_IN}",
    f"""
        CROSS JOIN pages AS p ON p.id IN (
            SELECT from_page_id FROM links
            WHERE to_path_key = a.path_key AND project_id = a.project_id AND to_project = ''
            ORDER BY from_page_id DESC LIMIT {limits.GRAPH_ENDS_MAX})""",
)
_POINTING_FROM_ELSEWHERE = _step(
    f"{_IN}",
    f"""
        CROSS JOIN scope AS j ON j.id = a.project_id
        CROSS JOIN pages AS p ON p.id IN (
            SELECT from_page_id FROM links WHERE to_path_key = a.path_key AND project_id IN (SELECT id FROM scope)
                AND to_project = j.name AND to_workspace = j.workspace LIMIT {limits.GRAPH_ENDS_MAX})""",
)
_NAMING = _step(
    f"{_SHARED} / (SELECT count(*) FROM page_entities WHERE entity_number = mine.entity_number)",
    f"""
        CROSS JOIN page_entities AS mine ON mine.page_number = a.number
        CROSS JOIN page_entities AS theirs ON theirs.entity_number = mine.entity_number
        CROSS JOIN pages AS p ON p.number = theirs.page_number
            AND (SELECT count(*) FROM (SELECT 1 FROM page_entities WHERE entity_number = mine.entity_number
                LIMIT {limits.GRAPH_SHARED_MAX + 1})) <= {limits.GRAPH_SHARED_MAX}""",
)
#: Breadth first, the heaviest first; who is out of scope, deleted or expired is not come through either.
_NEAR = text_statement(
    f"""
WITH RECURSIVE {SCOPE},
seeds(number, weight) AS (SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(:seeds)),
walk(page_number, depth, weight, trail) AS (
    SELECT p.number, 0, seeds.weight, ',' || p.number || ','
    FROM seeds JOIN pages AS p ON p.number = seeds.number
    WHERE {shown()} AND p.project_id IN (SELECT id FROM scope)
    UNION ALL {_POINTED_TO}
    UNION ALL {_POINTING}
    UNION ALL {_POINTING_FROM_ELSEWHERE}
    UNION ALL {_NAMING}
    ORDER BY 2, 3 DESC LIMIT :steps
)
SELECT w.page_number, max(w.weight) AS weight, min(w.depth) AS depth,
    (SELECT number FROM page_chunks WHERE page_number = w.page_number ORDER BY ord LIMIT 1) AS chunk_number
FROM walk AS w CROSS JOIN pages AS p ON p.number = w.page_number
WHERE w.depth > 0 AND w.page_number NOT IN (SELECT number FROM seeds)
GROUP BY w.page_number ORDER BY max(w.weight) DESC, p.updated_at DESC, w.page_number LIMIT :limit"""
)

_PAGES_OF = text_statement(
    "SELECT c.page_number, min(asked.key) AS place FROM json_each(:chunks) AS asked JOIN page_chunks AS c ON c.number = asked.value"
    " GROUP BY c.page_number ORDER BY place"
)


def pages_of(reading: Reading, chunks: Sequence[int]) -> list[int]:
    """The pages of these parts, each once, in their order."""
    return [row["page_number"] for row in reading.rows(_PAGES_OF, chunks=json.dumps(list(chunks)))]


def near(
    reading: Reading,
    seeds: Sequence[tuple[int, float]],
    project_numbers: Sequence[int] | None,
    *,
    now: int | None,
    limit: int,
) -> list[Row]:
    """The pages of these projects (None: of all) that lie near `seeds` (page numbers with their weights), these left out:
    page_number, chunk_number, weight (higher is better), depth (steps). Expired ones only without `now`."""
    if not seeds:
        return []
    return reading.rows(
        _NEAR,
        seeds=json.dumps(seeds),
        projects=None if project_numbers is None else json.dumps(list(project_numbers)),
        now=now,
        depth=limits.GRAPH_DEPTH,
        steps=limits.GRAPH_STEPS_MAX,
        limit=limit,
    )

"""Units by when they are from, newest first: turns by when they were said, pages by when they were last changed."""

from __future__ import annotations

import json
from collections.abc import Sequence

from memory_core.store.fulltext import IN_NO_DELETED_SESSION
from memory_core.store.statement import Row, text_statement
from memory_core.store.transaction import Reading

_IN_SCOPE = "(:everywhere OR {} IN (SELECT a.value FROM json_each(:projects) AS a))"


def _turns(column: str, condition: str) -> str:
    return (
        f"SELECT * FROM (SELECT o.seq AS number, o.{column}_at AS at FROM observations AS o INDEXED BY ix_observations_turns_{column}"
        " JOIN projects AS j ON j.id = o.project_id"
        f" WHERE o.speaker IN ('user','agent') AND o.body <> '' AND o.occurred_at {condition}"
        f" AND o.{column}_at >= :first AND o.{column}_at < :behind"
        f" AND (o.owner IS NULL OR o.owner = :owner) AND {IN_NO_DELETED_SESSION} AND {_IN_SCOPE.format('j.number')}"
        f" ORDER BY o.{column}_at DESC, o.seq DESC LIMIT :limit)"
    )


#: When it was said, as far as its client told; else when it was heard of.
_TURNS = text_statement(
    f"SELECT number, at FROM ({_turns('occurred', 'IS NOT NULL')} UNION ALL {_turns('recorded', 'IS NULL')})"
    " ORDER BY at DESC, number DESC LIMIT :limit"
)
_CHUNKS = text_statement(
    "SELECT c.number, p.updated_at AS at FROM projects AS j CROSS JOIN pages AS p INDEXED BY ix_pages_recent ON p.project_id = j.id"
    " AND p.tombstoned_at IS NULL AND p.updated_at >= :first AND p.updated_at < :behind"
    " JOIN page_chunks AS c ON c.page_number = p.number AND c.ord = 0"
    f" WHERE (p.expires_at IS NULL OR p.expires_at > :now) AND {_IN_SCOPE.format('j.number')}"
    " ORDER BY p.updated_at DESC, c.number DESC LIMIT :limit"
)


def turns(
    reading: Reading, projects: Sequence[int] | None, *, first: int, behind: int, owner: str, limit: int
) -> list[Row]:
    """number and at of turns from `first` on and before `behind` (UTC microseconds): shared ones and `owner`'s, of these projects
    (None: of all)."""
    return reading.rows(_TURNS, first=first, behind=behind, owner=owner, limit=limit, **_scope(projects))


def chunks(
    reading: Reading, projects: Sequence[int] | None, *, first: int, behind: int, now: int, limit: int
) -> list[Row]:
    """The same of pages, by their first parts; without those that expired by `now`."""
    return reading.rows(_CHUNKS, first=first, behind=behind, now=now, limit=limit, **_scope(projects))


def _scope(projects: Sequence[int] | None) -> dict[str, object]:
    return {"everywhere": int(projects is None), "projects": json.dumps(list(projects or ()))}

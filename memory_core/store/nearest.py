"""Which units are nearest to a vector. What may be found at all is decided here, in one place, before the cut.

In one project or a few, the index table answers; in many or all, or where there is no such table, the matrix in memory does
(measured: 100,000 vectors of 384 numbers take numpy 16 ms and the index table 74 ms; a fiftieth of them the table 1.3 ms).
Both are given the same units to look at, and a test holds them to the same answers.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from memory_core import limits
from memory_core.errors import StorageFailed
from memory_core.store import vector_index
from memory_core.store.statement import Row, text_statement
from memory_core.store.transaction import Reading

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    from memory_core.store.vector_matrix import VectorMatrix

logger = logging.getLogger(__name__)

#: Units of pages that are past their time, and of sessions that are being deleted. Few are, so that this is nearly nothing: as long
#: as these come first. Left to SQLite, all units did, 32 ms of 95,000.
_GONE: Final = (
    "SELECT x.number FROM pages AS p CROSS JOIN page_chunks AS c ON c.page_number = p.number"
    " CROSS JOIN vector_units AS x ON x.is_turn = 0 AND x.unit_number = c.number"
    " WHERE p.expires_at <= :now"
    " UNION ALL SELECT x.number FROM durable_sessions AS d CROSS JOIN observations AS o ON o.session_id = d.session_id"
    " CROSS JOIN vector_units AS x ON x.is_turn = 1 AND x.unit_number = o.seq WHERE d.deleted_at IS NOT NULL"
)
#: What one project has that may be found. Units of what was deleted or buried are deleted with it.
_ALLOWED: Final = (
    "SELECT u.number FROM vector_units AS u WHERE u.model_number = :model AND u.project_number = :project"
    f" AND (u.owner IS NULL OR u.owner = :owner) AND u.number NOT IN ({_GONE})"
)
_ALLOWED_HERE = text_statement(_ALLOWED)
#: The other way round, for all projects: there it is the shorter list.
_HIDDEN = text_statement(
    f"{_GONE} UNION ALL SELECT number FROM vector_units WHERE owner < :owner UNION ALL"
    " SELECT number FROM vector_units WHERE owner > :owner"
)
#: Looked at once more on the way out; also what a hit is.
_UNITS = text_statement(
    "SELECT u.number, u.is_turn, u.unit_number, u.piece, u.project_number FROM vector_units AS u"
    " LEFT JOIN page_chunks AS c ON u.is_turn = 0 AND c.number = u.unit_number"
    " LEFT JOIN pages AS p ON p.number = c.page_number"
    " WHERE u.number IN (SELECT value FROM json_each(:numbers)) AND u.model_number + 0 = :model AND (u.owner IS NULL OR u.owner = :owner)"
    " AND (u.is_turn = 1 OR (p.tombstoned_at IS NULL AND (p.expires_at IS NULL OR p.expires_at > :now)))"
)
#: Never reached by a time of now.
_NEVER: Final = -1


@dataclass(frozen=True, kw_only=True)
class Scope:
    """Who asks, and where. `now` None: expired pages too; `projects` None: all there are."""

    projects: Sequence[int] | None
    owner: str
    now: int | None


@dataclass(frozen=True, kw_only=True)
class Near:
    """A page chunk or turn, by its nearest piece; `similarity` is the cosine."""

    is_turn: bool
    number: int
    piece: int
    project_number: int
    similarity: float


def nearest(
    read: Reading, model: Row, vector: NDArray[numpy.float32], scope: Scope, limit: int, matrix: VectorMatrix
) -> list[Near]:
    """The `limit` nearest units of the scope, best first; several pieces of one turn count once."""
    wanted = limit
    while True:
        pieces = _pieces(read, model, vector, scope, wanted, matrix)
        best = _distinct(read, model, scope, pieces, limit)
        # Pieces of one turn crowd others out; nothing was hidden, so asking for more is enough.
        if len(best) >= limit or len(pieces) < wanted or wanted >= limits.VECTOR_NEIGHBOURS_MAX:
            return best
        wanted = min(wanted * 4, limits.VECTOR_NEIGHBOURS_MAX)


def _pieces(
    read: Reading, model: Row, vector: NDArray[numpy.float32], scope: Scope, limit: int, matrix: VectorMatrix
) -> list[tuple[float, int]]:
    """similarity and unit number, best first."""
    projects = scope.projects
    if projects is not None and len(projects) <= limits.VECTOR_PROJECTS_MAX:
        if vector_index.is_whole(read, model):
            try:
                return _by_index(read, model, vector, scope, projects, limit)
            except StorageFailed:
                logger.exception(
                    "the index of vectors failed; memory answers", extra={"action": "vector_index_failed"}
                )
        allowed = [
            row["number"]
            for project in projects
            for row in read.rows(_ALLOWED_HERE, **_bounds(scope), model=model["number"], project=project)
        ]
        return matrix.nearest(read, model, vector, limit, only=allowed)
    hidden = [row["number"] for row in read.rows(_HIDDEN, **_bounds(scope))]
    return matrix.nearest(read, model, vector, limit, projects=projects, hidden=hidden)


def _by_index(
    read: Reading,
    model: Row,
    vector: NDArray[numpy.float32],
    scope: Scope,
    projects: Sequence[int],
    limit: int,
) -> list[tuple[float, int]]:
    found = [
        (1.0 - row["distance"], row["number"])
        for project in projects
        for row in vector_index.nearest(
            read,
            model["number"],
            vector.tobytes(),
            project=project,
            limit=limit,
            allowed=_ALLOWED,
            model=model["number"],
            **_bounds(scope),
        )
    ]
    return sorted(found, key=lambda pair: (-pair[0], pair[1]))[:limit]


def _distinct(
    read: Reading, model: Row, scope: Scope, pieces: list[tuple[float, int]], limit: int
) -> list[Near]:
    numbers = json.dumps([number for _, number in pieces])
    rows = {
        row["number"]: row
        for row in read.rows(_UNITS, numbers=numbers, model=model["number"], **_bounds(scope))
    }
    best: dict[tuple[int, int], Near] = {}
    for similarity, number in pieces:
        row = rows.get(number)
        if row is None or (key := (row["is_turn"], row["unit_number"])) in best:
            continue
        best[key] = Near(
            is_turn=bool(row["is_turn"]),
            number=row["unit_number"],
            piece=row["piece"],
            project_number=row["project_number"],
            similarity=similarity,
        )
        if len(best) == limit:
            break
    return list(best.values())


def _bounds(scope: Scope) -> dict[str, object]:
    return {"owner": scope.owner, "now": _NEVER if scope.now is None else scope.now}

"""Questions to the full-text tables. The scope is part of every match: nothing outside it is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import bindparam, func, select

from memory_core import limits
from memory_core.store.fulltext import IN_NO_DELETED_SESSION, scope_token
from memory_core.store.statement import Row, Statement, text_statement
from memory_core.store.tables import page_versions, pages, projects, workspaces
from memory_core.store.transaction import Reading

_OBSERVATION_COLUMNS = "{title body command paths result}"

_COUNT_OBSERVATIONS = text_statement(
    "SELECT count(*) AS found FROM (SELECT 1 FROM observations_fts WHERE observations_fts MATCH :match LIMIT :at_most)"
)
#: Filtered before it is cut; what is shown of each is made only for the few that are left.
_OBSERVATIONS = text_statement(
    "SELECT o.id, o.session_id, o.kind, o.title, o.recorded_at, j.name AS project, w.name AS workspace, f.rank AS rank,"
    " snippet(observations_fts, -1, '<mark>', '</mark>', '…', :tokens) AS snippet"
    " FROM (SELECT f.rowid AS seq, bm25(observations_fts, 2.0, 1.0, 1.0, 1.0, 0.5, 0.0) AS rank"
    " FROM observations_fts AS f CROSS JOIN observations AS o ON o.seq = f.rowid"
    " WHERE observations_fts MATCH :match AND (o.owner IS NULL OR o.owner = :owner)"
    f" AND {IN_NO_DELETED_SESSION} ORDER BY rank LIMIT :limit) AS f"
    " CROSS JOIN observations_fts ON observations_fts.rowid = f.seq CROSS JOIN observations AS o ON o.seq = f.seq"
    " JOIN projects AS j ON j.id = o.project_id JOIN workspaces AS w ON w.id = j.workspace_id"
    " WHERE observations_fts MATCH :match ORDER BY f.rank"
)
_HEAD = func.substr(page_versions.c.content, page_versions.c.body_start + 1, limits.SNIPPET_MAX_CHARS * 2)
_RECENT = Statement(
    select(
        pages.c.id,
        pages.c.path,
        pages.c.updated_at,
        page_versions.c.title,
        page_versions.c.kind,
        projects.c.name.label("project"),
        workspaces.c.name.label("workspace"),
        _HEAD.label("head"),
    )
    .join(page_versions, page_versions.c.id == pages.c.version_id)
    .join(projects, projects.c.id == pages.c.project_id)
    .join(workspaces, workspaces.c.id == projects.c.workspace_id)
    .where(
        pages.c.project_id == bindparam("project_id"),
        pages.c.tombstoned_at.is_(None),
        (pages.c.expires_at.is_(None)) | (pages.c.expires_at > bindparam("now")),
    )
    .order_by(pages.c.updated_at.desc(), pages.c.number.desc())
    .limit(bindparam("limit"))
)
_LAST_VERSION = text_statement(
    "SELECT max(created_at) AS at FROM page_versions"
    " WHERE cause = :cause AND (:project_id IS NULL OR project_id = :project_id)"
)
_COUNTS = Statement(
    select(
        select(func.count())
        .select_from(pages)
        .where(pages.c.tombstoned_at.is_(None))
        .scalar_subquery()
        .label("pages_latest"),
        select(func.count()).select_from(page_versions).scalar_subquery().label("pages_all"),
    )
)
_PROJECT_COUNTS = Statement(
    select(
        select(func.count())
        .select_from(pages)
        .where(pages.c.tombstoned_at.is_(None), pages.c.project_id == bindparam("project_id"))
        .scalar_subquery()
        .label("pages_latest"),
        select(func.count())
        .select_from(page_versions)
        .where(page_versions.c.project_id == bindparam("project_id"))
        .scalar_subquery()
        .label("pages_all"),
    )
)


def _match(expression: str, columns: str, project_numbers: Sequence[int] | None) -> str:
    asked = f"({columns} : ({expression}))"
    if project_numbers is None:
        return asked
    scopes = " OR ".join(f'"{scope_token(number)}"' for number in project_numbers)
    return f"(scope : ({scopes})) AND {asked}"


def count_observations(
    reading: Reading, expression: str, project_numbers: Sequence[int] | None, *, at_most: int
) -> int:
    row: Any = reading.row(
        _COUNT_OBSERVATIONS,
        match=_match(expression, _OBSERVATION_COLUMNS, project_numbers),
        at_most=at_most,
    )
    return row["found"]


def observation_hits(
    reading: Reading,
    expression: str,
    project_numbers: Sequence[int] | None,
    *,
    owner: str | None,
    limit: int,
) -> list[Row]:
    """The best observations of these projects that are shared or `owner`'s: id, session_id, kind, title, recorded_at, project, workspace, rank, snippet."""
    match = _match(expression, _OBSERVATION_COLUMNS, project_numbers)
    return reading.rows(_OBSERVATIONS, match=match, owner=owner, limit=limit, tokens=limits.SNIPPET_TOKENS)


def recent_pages(reading: Reading, project_id: bytes, *, now: int, limit: int) -> list[Row]:
    """The pages of a project that changed last, with the head of their text."""
    return reading.rows(_RECENT, project_id=project_id, now=now, limit=limit)


def page_counts(reading: Reading, project_id: bytes | None = None) -> dict[str, int]:
    """`pages_latest` and `pages_all` (versions), of one project or of all."""
    row: Any = (
        reading.row(_COUNTS) if project_id is None else reading.row(_PROJECT_COUNTS, project_id=project_id)
    )
    return {"pages_latest": row["pages_latest"], "pages_all": row["pages_all"]}


def last_version_at(reading: Reading, cause: str, project_id: bytes | None = None) -> int | None:
    """When a page version of that cause was last made, UTC microseconds; None: never."""
    row: Any = reading.row(_LAST_VERSION, cause=cause, project_id=project_id)
    return row["at"]

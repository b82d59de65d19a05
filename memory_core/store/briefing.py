"""Questions about a project as a whole: what went on, which pages always count, which other projects it is tied to."""

from __future__ import annotations

from typing import Any

from sqlalchemy import and_, bindparam, exists, func, or_, select

from memory_core.domain.project import Project
from memory_core.store.shown import is_shown
from memory_core.store.statement import Row, Statement
from memory_core.store.tables import (
    links,
    observations,
    page_versions,
    pages,
    projects,
    sessions,
    workspaces,
)
from memory_core.store.tables_knowledge import knowledge
from memory_core.store.transaction import Reading

_IS_LIVE = and_(pages.c.project_id == bindparam("project_id"), is_shown())
_TOTALS = Statement(
    select(
        func.count().label("sessions"),
        func.count().filter(sessions.c.ended_at.is_(None)).label("sessions_open"),
        func.coalesce(func.sum(sessions.c.observation_count), 0).label("observations"),
        func.max(sessions.c.last_event_at).label("last_at"),
    ).where(sessions.c.project_id == bindparam("project_id"))
)
_SESSIONS_SINCE = Statement(
    select(func.count().label("count")).where(
        sessions.c.project_id == bindparam("project_id"), sessions.c.last_event_at >= bindparam("since")
    )
)
# Over the sessions, of which there is an index by project and time; observations have none.
_OBSERVATIONS_SINCE = Statement(
    select(func.count().label("count"))
    .join_from(sessions, observations, observations.c.session_id == sessions.c.id)
    .where(
        sessions.c.project_id == bindparam("project_id"),
        sessions.c.last_event_at >= bindparam("since"),
        observations.c.recorded_at >= bindparam("since"),
    )
)
_PAGES_SINCE = Statement(
    select(func.count().label("count")).where(_IS_LIVE, pages.c.updated_at >= bindparam("since"))
)


def _is_in(folder: str) -> Any:
    # The character behind "/" ends the range; LIKE would read "_" as any character.
    return and_(pages.c.path_key >= f"{folder}/", pages.c.path_key < f"{folder}0")


_core = (
    select(
        pages.c.path,
        pages.c.pinned,
        pages.c.updated_at,
        page_versions.c.title,
        page_versions.c.kind,
        func.substr(page_versions.c.content, page_versions.c.body_start + 1, bindparam("max_chars")).label(
            "text"
        ),
        (func.length(page_versions.c.content) - page_versions.c.body_start).label("chars"),
    )
    .join_from(pages, page_versions, page_versions.c.id == pages.c.version_id)
    .where(_IS_LIVE, or_(pages.c.pinned == 1, _is_in("_rules"), _is_in("_slots")))
    .order_by(pages.c.pinned.desc(), pages.c.path_key)
    .limit(bindparam("limit"))
)
_CORE = Statement(_core)
# How sure it is decides whether knowledge is given unasked, whatever is pinned.
_CORE_UNASKED = Statement(
    _core.where(~exists().where(knowledge.c.page_id == pages.c.id)),
)
_COUNT = func.count().label("links")
_DEPENDENTS = Statement(
    select(workspaces.c.name.label("workspace"), projects.c.name.label("project"), _COUNT)
    .join_from(links, pages, pages.c.id == links.c.from_page_id)
    .join(projects, projects.c.id == links.c.project_id)
    .join(workspaces, workspaces.c.id == projects.c.workspace_id)
    .where(
        links.c.to_workspace == bindparam("workspace"),
        links.c.to_project == bindparam("project"),
        links.c.project_id != bindparam("project_id"),
        is_shown(),
    )
    .group_by(projects.c.id)
    .order_by(_COUNT.desc(), workspaces.c.name, projects.c.name)
    .limit(bindparam("limit"))
)
_DEPENDENCIES = Statement(
    select(links.c.to_workspace.label("workspace"), links.c.to_project.label("project"), _COUNT)
    .join_from(links, pages, pages.c.id == links.c.from_page_id)
    .where(
        links.c.project_id == bindparam("project_id"),
        links.c.to_project != "",
        or_(links.c.to_project != bindparam("project"), links.c.to_workspace != bindparam("workspace")),
        is_shown(),
    )
    .group_by(links.c.to_workspace, links.c.to_project)
    .order_by(_COUNT.desc(), links.c.to_workspace, links.c.to_project)
    .limit(bindparam("limit"))
)


def totals(read: Reading, project_id: bytes) -> Row:
    """`sessions`, `sessions_open`, `observations` and `last_at` (NULL: nothing yet) of a project."""
    return read.rows(_TOTALS, project_id=project_id)[0]


def activity(read: Reading, project_id: bytes, *, since: int, now: int) -> dict[str, int]:
    """`sessions`, `observations` and `pages_updated` since a time, UTC microseconds."""

    def count(statement: Statement, **more: int) -> int:
        return read.rows(statement, project_id=project_id, since=since, **more)[0]["count"]

    return {
        "sessions": count(_SESSIONS_SINCE),
        "observations": count(_OBSERVATIONS_SINCE),
        "pages_updated": count(_PAGES_SINCE, now=now),
    }


def core_pages(
    read: Reading, project_id: bytes, *, now: int, limit: int, max_chars: int, unasked: bool = False
) -> list[Row]:
    """Pinned pages first, then rules and slots, by path: path, pinned, updated_at, title, kind, text (the first
    `max_chars` characters) and chars (how long the text is). `unasked`: without pages of knowledge."""
    return read.rows(
        _CORE_UNASKED if unasked else _CORE, project_id=project_id, now=now, limit=limit, max_chars=max_chars
    )


def dependents(read: Reading, project: Project, *, now: int, limit: int) -> list[Row]:
    """Other projects whose pages link to this one: workspace, project, links; the most first."""
    return _tied(read, _DEPENDENTS, project, now, limit)


def dependencies(read: Reading, project: Project, *, now: int, limit: int) -> list[Row]:
    """Other projects that pages of this one link to, there or not: workspace, project, links; the most first."""
    return _tied(read, _DEPENDENCIES, project, now, limit)


def _tied(read: Reading, statement: Statement, project: Project, now: int, limit: int) -> list[Row]:
    return read.rows(
        statement,
        project_id=project.id,
        project=project.name,
        workspace=project.workspace,
        now=now,
        limit=limit,
    )

"""What there is, for those who look around: workspaces, projects and pages, each list in the order of its names."""

from __future__ import annotations

from typing import Any

from sqlalchemy import and_, bindparam, func, or_, select

from memory_core.domain.place import CHECK_PROJECT
from memory_core.store.statement import Row, Statement
from memory_core.store.tables import page_versions, pages, projects, workspaces
from memory_core.store.transaction import Reading

_LIVE = and_(
    pages.c.tombstoned_at.is_(None),
    or_(pages.c.expires_at.is_(None), pages.c.expires_at > bindparam("now")),
)
_SHOWN = projects.c.name != CHECK_PROJECT
_PAGE_COUNT = func.count(pages.c.number).label("page_count")
_LAST = func.max(pages.c.updated_at).label("last_updated")
_WORKSPACES = Statement(
    select(
        workspaces.c.name,
        func.count(projects.c.id.distinct()).label("project_count"),
        _PAGE_COUNT,
        _LAST,
    )
    .outerjoin_from(workspaces, projects, and_(projects.c.workspace_id == workspaces.c.id, _SHOWN))
    .outerjoin(pages, and_(pages.c.project_id == projects.c.id, _LIVE))
    .where(workspaces.c.name > bindparam("after"))
    .group_by(workspaces.c.id)
    .order_by(workspaces.c.name)
    .limit(bindparam("limit"))
)
_PROJECTS = Statement(
    select(workspaces.c.name.label("workspace"), projects.c.name, _PAGE_COUNT, _LAST)
    .join_from(projects, workspaces, workspaces.c.id == projects.c.workspace_id)
    .outerjoin(pages, and_(pages.c.project_id == projects.c.id, _LIVE))
    .where(
        _SHOWN,
        or_(bindparam("workspace").is_(None), workspaces.c.name == bindparam("workspace")),
        or_(
            workspaces.c.name > bindparam("after_workspace"),
            and_(
                workspaces.c.name == bindparam("after_workspace"), projects.c.name > bindparam("after_name")
            ),
        ),
    )
    .group_by(projects.c.id)
    .order_by(workspaces.c.name, projects.c.name)
    .limit(bindparam("limit"))
)
_PAGES = Statement(
    select(
        pages.c.path,
        pages.c.path_key,
        pages.c.pinned,
        pages.c.updated_at,
        page_versions.c.title,
        page_versions.c.kind,
        page_versions.c.tier,
    )
    .join_from(pages, page_versions, page_versions.c.id == pages.c.version_id)
    .where(pages.c.project_id == bindparam("project_id"), _LIVE, pages.c.path_key > bindparam("after"))
    .order_by(pages.c.path_key)
    .limit(bindparam("limit"))
)


def listed_workspaces(read: Reading, *, now: int, after: str = "", limit: int) -> list[Row]:
    """name, project_count, page_count, last_updated (NULL: no page) of the workspaces behind the name `after`."""
    return read.rows(_WORKSPACES, now=now, after=after, limit=limit)


def listed_projects(
    read: Reading, *, now: int, workspace: str | None = None, after: tuple[str, str] = ("", ""), limit: int
) -> list[Row]:
    """workspace, name, page_count, last_updated of the projects (of one workspace, or all) behind the names `after`."""
    return read.rows(
        _PROJECTS,
        now=now,
        workspace=workspace,
        after_workspace=after[0],
        after_name=after[1],
        limit=limit,
    )


def listed_pages(
    read: Reading, project_id: bytes, *, now: int, after: str = "", limit: int
) -> list[dict[str, Any]]:
    """path, path_key, pinned, updated_at, title, kind, tier of a project's pages behind the path key `after`."""
    return [dict(row) for row in read.rows(_PAGES, project_id=project_id, now=now, after=after, limit=limit)]

"""Where pages point. A row says what a text says; which page that is, is found when it is asked.

So a link to a page that is not there yet is whole as soon as the page is, in whatever project, one to
a page that was deleted or renamed is open again, and nothing has to be put right when pages come and go.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import and_, bindparam, delete, func, insert, or_, select

from memory_core.domain.page import PagePath
from memory_core.domain.project import Project
from memory_core.store.statement import Row, Statement
from memory_core.store.tables import links, page_versions, pages, projects, workspaces
from memory_core.store.transaction import Reading, Transaction


@dataclass(frozen=True, kw_only=True)
class LinkTarget:
    """What a page points to: a path of its own project (no names), or of another one."""

    path: PagePath
    workspace: str = ""
    project: str = ""


@dataclass(frozen=True, kw_only=True)
class LinkedPage:
    """One end of a link. Of a page that is not there, `page_id`, `title` and `kind` are None."""

    workspace: str
    project: str
    path: str
    page_id: bytes | None
    title: str | None
    kind: str | None


_DROP = Statement(delete(links).where(links.c.from_page_id == bindparam("page_id")))
_ADD = Statement(
    insert(links).values(
        **{
            name: bindparam(name)
            for name in ("from_page_id", "project_id", "to_workspace", "to_project", "to_path_key", "to_path")
        }
    )
)

_own = projects.alias("own")
_own_workspace = workspaces.alias("own_workspace")
_other = projects.alias("other")
_other_workspace = workspaces.alias("other_workspace")
_target_project = func.iif(links.c.to_project == "", links.c.project_id, _other.c.id)
_OUTGOING = Statement(
    select(
        func.iif(links.c.to_project == "", _own_workspace.c.name, links.c.to_workspace).label("workspace"),
        func.iif(links.c.to_project == "", _own.c.name, links.c.to_project).label("project"),
        func.coalesce(pages.c.path, links.c.to_path).label("path"),
        pages.c.id.label("page_id"),
        page_versions.c.title,
        page_versions.c.kind,
    )
    .select_from(links)
    .join(_own, _own.c.id == links.c.project_id)
    .join(_own_workspace, _own_workspace.c.id == _own.c.workspace_id)
    .outerjoin(_other_workspace, _other_workspace.c.name == links.c.to_workspace)
    .outerjoin(
        _other, and_(_other.c.workspace_id == _other_workspace.c.id, _other.c.name == links.c.to_project)
    )
    .outerjoin(
        pages,
        and_(
            pages.c.project_id == _target_project,
            pages.c.path_key == links.c.to_path_key,
            pages.c.tombstoned_at.is_(None),
        ),
    )
    .outerjoin(page_versions, page_versions.c.id == pages.c.version_id)
    .where(links.c.from_page_id == bindparam("page_id"))
    .order_by(links.c.to_workspace, links.c.to_project, links.c.to_path_key)
    .limit(bindparam("limit"))
)
_INCOMING = Statement(
    select(
        workspaces.c.name.label("workspace"),
        projects.c.name.label("project"),
        pages.c.path,
        pages.c.id.label("page_id"),
        page_versions.c.title,
        page_versions.c.kind,
    )
    .select_from(links)
    .join(pages, pages.c.id == links.c.from_page_id)
    .join(page_versions, page_versions.c.id == pages.c.version_id)
    .join(projects, projects.c.id == links.c.project_id)
    .join(workspaces, workspaces.c.id == projects.c.workspace_id)
    .where(
        links.c.to_path_key == bindparam("path_key"),
        or_(
            and_(links.c.to_project == "", links.c.project_id == bindparam("project_id")),
            and_(
                links.c.to_project == bindparam("project"),
                links.c.to_workspace == bindparam("workspace"),
            ),
        ),
        pages.c.tombstoned_at.is_(None),
    )
    .order_by(pages.c.updated_at.desc(), pages.c.number)
    .limit(bindparam("limit"))
)


def replace(tx: Transaction, project: Project, page_id: bytes, targets: Iterable[LinkTarget]) -> None:
    """Make `targets` (each once) all that a page points to."""
    drop(tx, page_id)
    rows = [
        {
            "from_page_id": page_id,
            "project_id": project.id,
            "to_workspace": target.workspace,
            "to_project": target.project,
            "to_path_key": target.path.key,
            "to_path": target.path.path,
        }
        for target in targets
    ]
    if rows:
        tx.run_many(_ADD, rows)


def drop(tx: Transaction, page_id: bytes) -> None:
    """A page points nowhere any more."""
    tx.run(_DROP, page_id=page_id)


def outgoing(reading: Reading, page_id: bytes, *, limit: int) -> list[LinkedPage]:
    """The pages that a page points to, also those that are not there, in the order of their paths."""
    return [_linked(row) for row in reading.rows(_OUTGOING, page_id=page_id, limit=limit)]


def incoming(reading: Reading, project: Project, path_key: str, *, limit: int) -> list[LinkedPage]:
    """The pages of any project that point to a path of `project`, the newest first; a page need not be there."""
    rows = reading.rows(
        _INCOMING,
        path_key=path_key,
        project_id=project.id,
        project=project.name,
        workspace=project.workspace,
        limit=limit,
    )
    return [_linked(row) for row in rows]


def _linked(row: Row) -> LinkedPage:
    found: Any = row
    return LinkedPage(**{name: found[name] for name in LinkedPage.__dataclass_fields__})

"""Where pages point. A row says what a text says; which page that is, is found when it is asked.

So a link to a page that is not there yet is whole as soon as the page is, in whatever project, one to
a page that was deleted or renamed is open again, and nothing has to be put right when pages come and go.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import and_, bindparam, delete, func, insert, or_, select

from memory_core.domain.links import nearest
from memory_core.domain.page import PagePath
from memory_core.domain.project import Project
from memory_core.store.shown import is_shown
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
    #: The path key that the link's text says; another one than the page's where the text shortens it.
    said: str = ""


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
        links.c.to_path_key.label("said"),
        (links.c.to_project == "").label("is_own"),
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
            is_shown(),
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
        is_shown(),
    )
    .order_by(pages.c.updated_at.desc(), pages.c.number)
    .limit(bindparam("limit"))
)


#: The last part of a path: what is left when all up to the last slash is taken away.
last_part = func.replace(
    pages.c.path_key, func.rtrim(pages.c.path_key, func.replace(pages.c.path_key, "/", "")), ""
)
_CALLED = Statement(
    select(
        workspaces.c.name.label("workspace"),
        projects.c.name.label("project"),
        pages.c.path,
        pages.c.path_key,
        pages.c.id.label("page_id"),
        page_versions.c.title,
        page_versions.c.kind,
    )
    .join(page_versions, page_versions.c.id == pages.c.version_id)
    .join(projects, projects.c.id == pages.c.project_id)
    .join(workspaces, workspaces.c.id == projects.c.workspace_id)
    .where(
        pages.c.project_id == bindparam("project_id"),
        is_shown(),
        last_part.in_(select(func.json_each(bindparam("names")).table_valued("value").c.value)),
    )
)
_SOURCE = Statement(select(pages.c.project_id, pages.c.path_key).where(pages.c.id == bindparam("page_id")))
_there = pages.alias("there")
#: Links that say the end of a path, where no page has just that path.
_SHORTENED = Statement(
    select(
        workspaces.c.name.label("workspace"),
        projects.c.name.label("project"),
        pages.c.path,
        pages.c.path_key,
        pages.c.id.label("page_id"),
        page_versions.c.title,
        page_versions.c.kind,
        links.c.to_path_key.label("said"),
    )
    .select_from(links)
    .join(pages, pages.c.id == links.c.from_page_id)
    .join(page_versions, page_versions.c.id == pages.c.version_id)
    .join(projects, projects.c.id == links.c.project_id)
    .join(workspaces, workspaces.c.id == projects.c.workspace_id)
    .outerjoin(
        _there,
        and_(
            _there.c.project_id == links.c.project_id,
            _there.c.path_key == links.c.to_path_key,
            is_shown(_there),
        ),
    )
    .where(
        links.c.to_path_key.in_(select(func.json_each(bindparam("ends")).table_valued("value").c.value)),
        links.c.project_id == bindparam("project_id"),
        links.c.to_project == "",
        is_shown(),
        _there.c.id.is_(None),
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


def outgoing(reading: Reading, page_id: bytes, *, now: int, limit: int) -> list[LinkedPage]:
    """The pages that a page points to, also those that are not there (or expired), in the order of the paths that its text says."""
    rows = list(reading.rows(_OUTGOING, page_id=page_id, now=now, limit=limit))
    open_keys = {row["said"] for row in rows if row["page_id"] is None and row["is_own"]}
    if not open_keys:
        return [_linked(row) for row in rows]
    source: Any = reading.row(_SOURCE, page_id=page_id)
    called = _called(reading, source["project_id"], open_keys, now)
    found: list[LinkedPage] = []
    for row in rows:
        is_open = row["page_id"] is None and row["is_own"]
        end = nearest(row["said"], source["path_key"], called) if is_open else None
        found.append(dataclasses.replace(called[end], said=row["said"]) if end else _linked(row))
    return found


def incoming(reading: Reading, project: Project, path_key: str, *, now: int, limit: int) -> list[LinkedPage]:
    """The pages of any project that point to a path of `project`, the newest first, then those whose text shortens the
    path; a page need not be there."""
    rows = reading.rows(
        _INCOMING,
        path_key=path_key,
        project_id=project.id,
        project=project.name,
        workspace=project.workspace,
        now=now,
        limit=limit,
    )
    found = [_linked(row) for row in rows]
    parts = path_key.split("/")
    ends = ["/".join(parts[at:]) for at in range(1, len(parts))]
    if not ends or len(found) >= limit:
        return found
    called = _called(reading, project.id, {path_key}, now)
    known = {one.page_id for one in found}
    for row in reading.rows(_SHORTENED, project_id=project.id, ends=json.dumps(ends), now=now, limit=limit):
        if row["page_id"] not in known and nearest(row["said"], row["path_key"], called) == path_key:
            found.append(_linked(row))
    return found[:limit]


def _called(reading: Reading, project_id: bytes, keys: Iterable[str], now: int) -> dict[str, LinkedPage]:
    """Path key → page of those that have the last part of one of `keys`."""
    names = sorted({key.rpartition("/")[2] for key in keys})
    rows = reading.rows(_CALLED, project_id=project_id, names=json.dumps(names), now=now)
    return {row["path_key"]: _linked(row) for row in rows}


def _linked(row: Row) -> LinkedPage:
    found: Any = row
    there = set(found.keys())
    return LinkedPage(**{name: found[name] for name in LinkedPage.__dataclass_fields__ if name in there})


def each_once(ends: Iterable[LinkedPage]) -> list[LinkedPage]:
    """A page to which a text points under several names counts once."""
    return list({(end.workspace, end.project, end.path): end for end in ends}.values())

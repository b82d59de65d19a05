"""Workspaces and projects: finding and making them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Select, bindparam, func, select
from sqlalchemy.dialects.sqlite import insert

from memory_core.store.statement import Row, Statement, text_statement
from memory_core.store.tables import projects, workspaces
from memory_core.store.transaction import Reading, Transaction


def _joined() -> Select[Any, Any, Any, Any, Any, Any, Any]:
    return select(
        projects.c.id,
        projects.c.number,
        projects.c.name,
        projects.c.repo_path,
        projects.c.folder,
        projects.c.earlier_folders,
        workspaces.c.name.label("workspace"),
    ).join_from(projects, workspaces, workspaces.c.id == projects.c.workspace_id)


_NAMED = Statement(
    _joined().where(workspaces.c.name == bindparam("workspace"), projects.c.name == bindparam("name"))
)
_BY_ID = Statement(_joined().where(projects.c.id == bindparam("id")))
_ALL = Statement(_joined().order_by(workspaces.c.name, projects.c.name).limit(bindparam("limit")))
_BY_NAME = Statement(
    _joined()
    .where(projects.c.name == bindparam("name"))
    .order_by(workspaces.c.name != "default", workspaces.c.name)
    .limit(bindparam("limit"))
)
_ABOVE = text_statement(
    "SELECT p.id, p.number, p.name, p.repo_path, p.folder, p.earlier_folders,"
    " w.name AS workspace"
    " FROM json_each(:directories) AS d"
    " JOIN workspaces AS w ON w.name = :workspace"
    " JOIN projects AS p ON p.workspace_id = w.id AND p.repo_path = d.value"
    " ORDER BY length(p.repo_path) DESC LIMIT 1"
)
_WORKSPACE = Statement(select(workspaces.c.id).where(workspaces.c.name == bindparam("name")))
_COUNT = Statement(select(func.count().label("count")).select_from(projects))
_ADD_WORKSPACE = Statement(
    insert(workspaces).values(id=bindparam("id"), name=bindparam("name"), created_at=bindparam("created_at"))
)
_ADD = Statement(
    insert(projects).values(
        id=bindparam("id"),
        workspace_id=bindparam("workspace_id"),
        name=bindparam("name"),
        repo_path=bindparam("repo_path"),
        folder=bindparam("folder"),
        created_at=bindparam("created_at"),
    )
)
_IN_FOLDER = Statement(_joined().where(projects.c.folder == bindparam("folder")))
_SET_FOLDER = Statement(
    projects.update()
    .where(projects.c.id == bindparam("project_id"))
    .values(folder=bindparam("new_folder"), earlier_folders=bindparam("earlier"))
)
_SET_REPO_PATH = Statement(
    projects.update()
    .where(projects.c.id == bindparam("project_id"), projects.c.repo_path.is_(None))
    .values(repo_path=bindparam("new_path"))
)


def named(read: Reading, workspace: str, name: str) -> Row | None:
    """The project of that name: id, number, name, repo_path, workspace."""
    return read.row(_NAMED, workspace=workspace, name=name)


def by_id(read: Reading, project_id: bytes) -> Row | None:
    return read.row(_BY_ID, id=project_id)


def by_name(read: Reading, name: str, *, limit: int = 10) -> list[Row]:
    """The projects of that name in any workspace, the default workspace's first."""
    return read.rows(_BY_NAME, name=name, limit=limit)


def above(read: Reading, workspace: str, directories: list[str]) -> Row | None:
    """The project whose repository is the longest of `directories` (a directory and those above it)."""
    if not directories:
        return None
    return read.row(_ABOVE, workspace=workspace, directories=json.dumps(directories))


def listed(read: Reading, *, limit: int = 1_000) -> list[Row]:
    return read.rows(_ALL, limit=limit)


def count(read: Reading) -> int:
    row = read.row(_COUNT)
    return row["count"] if row else 0


def add(
    tx: Transaction,
    *,
    workspace: str,
    name: str,
    repo_path: str | None,
    project_id: bytes | None = None,
    folder: str | None = None,
) -> bytes:
    """Make a project that is not there yet, its workspace too where needed; the project's id (a new one unless given)."""
    found = tx.row(_WORKSPACE, name=workspace)
    if found is None:
        workspace_id = tx.new_id()
        tx.run(_ADD_WORKSPACE, id=workspace_id, name=workspace, created_at=tx.now)
    else:
        workspace_id = found["id"]
    project_id = project_id or tx.new_id()
    tx.run(
        _ADD,
        id=project_id,
        workspace_id=workspace_id,
        name=name,
        repo_path=repo_path,
        folder=folder,
        created_at=tx.now,
    )
    return project_id


def set_repo_path(tx: Transaction, project_id: bytes, repo_path: str) -> None:
    """Note where the repository lies, unless a place is known already."""
    tx.run(_SET_REPO_PATH, project_id=project_id, new_path=repo_path)


def in_folder(read: Reading, folder: str) -> Row | None:
    """The project whose renamed folder that is."""
    return read.row(_IN_FOLDER, folder=folder)


def set_folder(tx: Transaction, project_id: bytes, folder: str | None, earlier: Sequence[str]) -> None:
    """Note where a project's pages lie now (None: where its names say), and where they lay before."""
    tx.run(_SET_FOLDER, project_id=project_id, new_folder=folder, earlier=json.dumps(list(earlier)))

"""`/api/v1` for the versions of a page: which there were, and what each said."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, Response, request

from memory_core.domain.page import PagePath, page_path
from memory_core.domain.project import Project
from memory_core.errors import Invalid, NotFound
from memory_core.ids import id_bytes, id_text
from memory_core.recall.scope import Asker, project_for
from memory_core.store import version_lists
from memory_core.store.database import Snapshot
from memory_core.store.statement import Row
from web import lists
from web.answers import json_answer
from web.auth import current, needs
from web.parts import Parts
from web.query import takes
from web.shapes import version_shape

_PROJECT = "/workspaces/<workspace>/projects/<project>"


def blueprint(parts: Parts) -> Blueprint:
    routes = Blueprint("api_versions", __name__, url_prefix="/api/v1")

    @routes.get("/pages/versions")
    @needs("read")
    @takes("path", "workspace", "project", "before", "limit")
    def _versions() -> Response:
        """Of a page by its path alone: the project is found as everywhere where none is named."""
        path = page_path(lists.given("path") or "")
        context = parts.context(current(), request.environ)
        asker = Asker(principal=context.principal, session_id=context.session_id, directory=context.directory)
        with parts.database.snapshot() as reading:
            found = project_for(reading, asker, lists.given("workspace"), lists.given("project"))
            return _listed(reading, found, path)

    @routes.get(f"{_PROJECT}/versions/<path:path>")
    @needs("read")
    @takes("id", "before", "limit")
    def _of_page(workspace: str, project: str, path: str) -> Response:
        """The list; with `id` that one version and its text."""
        version = lists.given("id")
        if version is not None and (lists.given("before") or lists.given("limit")):
            raise Invalid("id asks for one version; before and limit go with the list")
        with parts.database.snapshot() as reading:
            found = project_for(reading, Asker(principal=current().principal), workspace, project)
            if version is None:
                return _listed(reading, found, page_path(path))
            return json_answer(_told(found, one_version(reading, found, page_path(path), version)))

    return routes


def versions_of(reading: Snapshot, project: Project, path: PagePath, *, before: int, limit: int) -> list[Row]:
    """Newest first; `NotFound` for a path that never had a page."""
    found = version_lists.listed(reading, project.id, path.key, before=before, limit=limit)
    if not found and before == version_lists.FIRST:
        raise NotFound(f"there is no page {path.path!r} in {project.workspace}/{project.name}, and never was")
    return found


def one_version(reading: Snapshot, project: Project, path: PagePath, version: str) -> Row:
    found = version_lists.one(reading, project.id, path.key, id_bytes(version))
    if found is None:
        raise NotFound(f"the page {path.path!r} has no version {version[:64]}")
    return found


def _listed(reading: Snapshot, project: Project, path: PagePath) -> Response:
    limit, before = lists.limit(), lists.number("before")
    rows = versions_of(
        reading, project, path, before=version_lists.FIRST if before is None else before, limit=limit
    )
    shown = [{**version_shape(row), "workspace": project.workspace, "project": project.name} for row in rows]
    return lists.listed(shown, limit, before=rows[-1]["seq"] if rows else None)


def _told(project: Project, row: Row) -> dict[str, Any]:
    return {
        **version_shape(row),
        "workspace": project.workspace,
        "project": project.name,
        "newest_version_id": None if row["tombstoned_at"] else id_text(row["newest_id"]),
        # As stored: what a person wrote into the file is redacted here.
        "body_markdown": row["content"][row["body_start"] :],
    }

"""`/api/v1` for the wiki's history: checkpoints, and bringing an older state of a page back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from flask import Blueprint, Response, request

from memory_core import limits
from memory_core.clock import MICROSECONDS, rfc3339
from memory_core.commands.checkpoints import MakeCheckpoint
from memory_core.commands.restoring import LogEntry, OldState, PageHistory, RestorePage
from memory_core.domain.page import PagePath, page_path
from memory_core.domain.project import Project
from memory_core.errors import Invalid
from memory_core.ids import id_text
from memory_core.recall.scope import Asker, project_for
from memory_core.store import git_batches
from memory_core.store.database import Snapshot
from web import lists
from web.answers import json_answer, submitted
from web.auth import current, needs
from web.bodies import parse_json, read_body
from web.calls import CallContext
from web.parts import Parts
from web.query import takes

_DEFAULT = 20


def blueprint(parts: Parts) -> Blueprint:
    routes = Blueprint("history", __name__, url_prefix="/api/v1")
    history = PageHistory(parts.settings, parts.clock)

    @routes.get("/checkpoints")
    @needs("read")
    @takes("workspace", "project", "path", "limit")
    def _checkpoints() -> Response:
        count, given = lists.limit(_DEFAULT, limits.RESULTS_MAX), _given("workspace", "project", "path")
        path = page_path(given["path"]) if given.get("path") else None
        with parts.database.snapshot() as reading:
            project = _project(reading, given) if path or given.get("project") else None
            pending = [] if project else git_batches.waiting(reading, limits.GIT_WAITING_MAX)
            kept = git_batches.newest_committed(reading, limits.GIT_LOOK_BACK_COMMITS)
        commits = history.checkpoints(count, project, path)
        # For a moment a commit is made and not yet noted.
        made = {batch_id for entry in commits for batch_id in entry.batch_ids}
        found = [_pending(batch) for batch in reversed(pending) if id_text(batch.id) not in made]
        # A checkpoint whose pages another commit held already is named by no commit, only in the books.
        held: dict[str | None, list[str]] = {}
        for batch in kept:
            if batch.kind == git_batches.CHECKPOINT:
                held.setdefault(batch.commit_id, []).append(id_text(batch.id))
        return json_answer(
            (found + [_committed(entry, held.get(entry.commit_id, ())) for entry in commits])[:count]
        )

    @routes.post("/checkpoints")
    @routes.post("/commit")
    @needs("write")
    def _commit() -> Response:
        message = _texts("message").get("message", "")
        return submitted(_context(parts).submit(MakeCheckpoint(message=message)))

    @routes.get("/pages/restore")
    @needs("read")
    @takes("workspace", "project", "path", "from")
    def _preview() -> Response:
        project, path, state = _state(_given("workspace", "project", "path", "from"))
        return json_answer(
            {
                "workspace": project.workspace,
                "project": project.name,
                "path": state.now.path if state.now else path.path,
                "origin": state.origin,
                "content": state.content,
                "current": state.now.content if state.now else None,
                "base_version": id_text(state.now.version_id) if state.now else None,
            }
        )

    @routes.post("/pages/restore")
    @needs("write")
    def _restore() -> Response:
        given = _texts("workspace", "project", "path", "from", "base_version")
        project, path, state = _state(given)
        context = _context(parts)
        answer = context.submit(
            RestorePage(
                workspace=project.workspace,
                project=project.name,
                path=path.path,
                content=state.content,
                origin=state.origin,
                base_version=given.get("base_version"),
            )
        )
        return submitted(context.told_of_edit(answer))

    def _state(given: Mapping[str, str]) -> tuple[Project, PagePath, OldState]:
        path, source = page_path(given.get("path", "")), given.get("from", "").strip()
        if not source:
            raise Invalid("from is missing: a version id, a checkpoint id or a commit")
        with parts.database.snapshot() as reading:
            project = _project(reading, given)
            found = history.find(reading, project, path, source)
        return project, path, history.load(found)

    def _project(reading: Snapshot, given: Mapping[str, str]) -> Project:
        context = _context(parts)
        asker = Asker(principal=context.principal, session_id=context.session_id, directory=context.directory)
        return project_for(reading, asker, given.get("workspace") or None, given.get("project") or None)

    return routes


def _context(parts: Parts) -> CallContext:
    return parts.context(current(), request.environ)


def _given(*names: str) -> dict[str, str]:
    """The parameters of the query that are not empty."""
    return {name: text for name in names if (text := lists.given(name)) is not None}


def _texts(*names: str) -> dict[str, str]:
    """The fields of the body, all of them texts that may be left out."""
    body = read_body(request)
    given: Any = parse_json(body) if body.strip() else {}
    if not isinstance(given, dict):
        raise Invalid("the body is one JSON object")
    found: dict[str, str] = {}
    for name in names:
        value: Any = given.get(name)  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
        if value is not None and not isinstance(value, str):
            raise Invalid(f"{name} is a text")
        if value is not None:
            found[name] = value
    return found


def _pending(batch: git_batches.Batch) -> dict[str, Any]:
    return {
        "commit": None,
        "checkpoints": [id_text(batch.id)],
        "at": rfc3339(batch.closed_at),
        "author": "memoryd",
        "message": batch.message or batch.kind,
        "pending": True,
    }


def _committed(entry: LogEntry, held: Iterable[str]) -> dict[str, Any]:
    return {
        "commit": entry.commit_id,
        "checkpoints": list(dict.fromkeys((*entry.batch_ids, *held))),
        "at": rfc3339(entry.at * MICROSECONDS),
        "author": entry.author,
        "message": entry.subject,
        "pending": False,
    }

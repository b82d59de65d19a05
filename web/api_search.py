"""`/api/v1/search`: pages by their words, in the scopes that are named or in all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from flask import Blueprint, Response, request

from memory_core import limits
from memory_core.domain import recalled
from memory_core.domain.project import Project
from memory_core.errors import Invalid
from memory_core.ids import id_bytes
from memory_core.recall.scope import Asker, project_for
from memory_core.recall.search import Hit, Question, search
from memory_core.store.database import Snapshot
from web import lists
from web.answers import json_answer
from web.api_wiki import kept
from web.auth import current, needs
from web.bodies import parse_json, read_body
from web.parts import Parts
from web.query import takes
from web.snippets import marked


class Asked(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A search as a JSON body says it."""

    q: str = ""
    query: str = ""
    workspace: str | None = None
    project: str | None = None
    #: Each `workspace/project`.
    scopes: list[str] = []
    limit: int = limits.RESULTS_DEFAULT


def blueprint(parts: Parts) -> Blueprint:
    routes = Blueprint("api_search", __name__, url_prefix="/api/v1/search")

    @routes.get("")
    @needs("read")
    @takes("q", "query", "workspace", "project", "scope", "limit")
    def _get() -> Response:
        scopes = ",".join(request.args.getlist("scope")).split(",")
        if lists.given("q") and lists.given("query"):
            raise Invalid("q and query are the same; give one of them")
        asked = Asked(
            q=lists.given("q") or lists.given("query") or "",
            workspace=lists.given("workspace"),
            project=lists.given("project"),
            scopes=[scope.strip() for scope in scopes if scope.strip()],
            limit=lists.limit(limits.RESULTS_DEFAULT, limits.RESULTS_MAX),
        )
        return _answered(parts, asked, kept(limits.LIST_CACHE_SECONDS))

    @routes.post("")
    @needs("read")
    def _post() -> Response:
        try:
            asked = msgspec.convert(parse_json(read_body(request)), type=Asked)
        except msgspec.ValidationError as error:
            raise Invalid(f"search: {error}") from error
        return _answered(parts, asked, {})

    return routes


def found_pages(
    parts: Parts, reading: Snapshot, text: str, projects: Sequence[Project] | None, limit: int
) -> list[Hit]:
    """The pages that answer to `text`; they count as read by the caller."""
    principal = current().principal
    hits = search(
        reading,
        Question(
            text=text,
            projects=projects,
            now=parts.clock.now_us(),
            principal=principal,
            limit=limit,
            pages_only=True,
        ),
    ).hits
    parts.accesses.note(current(), [id_bytes(hit.id) for hit in hits])
    return hits


def _answered(parts: Parts, asked: Asked, headers: dict[str, str]) -> Response:
    if not 1 <= asked.limit <= limits.RESULTS_MAX:
        raise Invalid(f"limit is a number from 1 to {limits.RESULTS_MAX}, not {asked.limit}")
    text = (asked.q or asked.query).strip()
    with parts.database.snapshot() as reading:
        projects = _projects(reading, asked)
        hits = found_pages(parts, reading, text, projects, asked.limit)
    return json_answer(_shaped(hits), headers=headers)


def _projects(reading: Snapshot, asked: Asked) -> list[Project] | None:
    """The projects that are meant; None: all."""
    if bool(asked.workspace) != bool(asked.project):
        raise Invalid("workspace and project go together: give both, or neither")
    names = [(asked.workspace, asked.project)] if asked.workspace and asked.project else []
    for scope in asked.scopes:
        workspace, slash, project = scope.strip().partition("/")
        if not (slash and workspace and project):
            raise Invalid(f"a scope is workspace/project, not {scope[:64]!r}")
        names.append((workspace, project))
    if len(names) > limits.SCOPES_MAX:
        raise Invalid(f"at most {limits.SCOPES_MAX} scopes in one search")
    asker = Asker(principal=current().principal)
    found = [project_for(reading, asker, *name) for name in dict.fromkeys(names)]
    return found or None


def _shaped(hits: Iterable[Hit]) -> list[dict[str, Any]]:
    return [
        {
            "workspace": hit.workspace,
            "project": hit.project,
            "path": hit.path,
            "title": recalled.unfenced(hit.title),
            "kind": hit.kind,
            "updated_at": hit.date,
            "snippet": str(marked(hit.snippet)),
            # Lower is better, as ranks are.
            "rank": -hit.score,
        }
        for hit in hits
    ]

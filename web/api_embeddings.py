"""`/api/v1/embeddings`: how far they are, and making what is missing, or all, now."""

from __future__ import annotations

import msgspec
from flask import Blueprint, Response, request

from memory_core import limits
from memory_core.commands.embeddings import MakeEmbeddings
from memory_core.recall.scope import Asker, project_for
from memory_core.store.database import Snapshot
from web import embedding_state, lists
from web.answers import json_answer
from web.auth import current, needs
from web.bodies import read_as
from web.parts import Parts
from web.query import takes
from web.submitting import submit


class _Make(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    force: bool = False
    workspace: str | None = None
    project: str | None = None
    all_projects: bool = False


def blueprint(parts: Parts) -> Blueprint:
    routes = Blueprint("api_embeddings", __name__, url_prefix="/api/v1/embeddings")

    @routes.get("")
    @needs("read")
    @takes("workspace", "project")
    def _state() -> Response:
        with parts.database.snapshot() as reading:
            number = None
            if lists.given("workspace") or lists.given("project"):
                number = _named(parts, reading, lists.given("workspace"), lists.given("project"))
            return json_answer(embedding_state.shape(reading, number))

    @routes.post("")
    @needs("admin")
    def _make() -> Response:
        asked = read_as(_Make, limits.EMBED_BODY_MAX_BYTES)
        with parts.database.snapshot() as reading:
            # What is missing is made of all projects in any case.
            is_one = asked.force and not asked.all_projects
            numbers = (_named(parts, reading, asked.workspace, asked.project),) if is_one else None
        return submit(parts, MakeEmbeddings(force=asked.force, projects=numbers))

    return routes


def _named(parts: Parts, reading: Snapshot, workspace: str | None, project: str | None) -> int:
    """The number of the project that is named, or else that of the asker's directory. Raises `NotFound`."""
    context = parts.context(current(), request.environ)
    asker = Asker(principal=context.principal, session_id=context.session_id, directory=context.directory)
    return project_for(reading, asker, workspace, project).number

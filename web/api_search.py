"""`/api/v1/search`: what `memory_query` finds, in the scopes that are named or in all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from flask import Blueprint, Response, request

from memory_core import limits
from memory_core.domain import recalled
from memory_core.domain.project import Project
from memory_core.errors import Invalid
from memory_core.ids import id_bytes
from memory_core.recall.raw import RawHit
from memory_core.recall.reranking import reranked, widened
from memory_core.recall.scope import Asker, project_for
from memory_core.recall.search import Found, Hit, Question, search
from memory_core.recall.vectors import embedded
from memory_core.store.database import Snapshot
from web import lists
from web.answers import json_answer
from web.api_wiki import kept
from web.auth import current, needs
from web.bodies import parse_json, read_body
from web.parts import Parts
from web.query import takes
from web.snippets import marked

#: Header of an answer: ways of finding that did not answer, e.g. the embedder's; the others did.
STREAMS_FAILED = "Memoryd-Streams-Failed"


class Asked(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A search as a JSON body says it."""

    q: str = ""
    query: str = ""
    workspace: str | None = None
    project: str | None = None
    #: Each `workspace/project`.
    scopes: list[str] = []
    limit: int = limits.RESULTS_DEFAULT
    #: Pages past their `expires_at` too.
    include_expired: bool = False
    #: How each hit was found; the answer is an object then.
    explain: bool = False


def blueprint(parts: Parts) -> Blueprint:
    routes = Blueprint("api_search", __name__, url_prefix="/api/v1/search")

    @routes.get("")
    @needs("read")
    @takes("q", "query", "workspace", "project", "scope", "limit", "include_expired", "explain")
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
            include_expired=lists.flag("include_expired"),
            explain=lists.flag("explain"),
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


def found_for(
    parts: Parts,
    text: str,
    projects_in: Callable[[Snapshot], Sequence[Project] | None],
    *,
    limit: int,
    include_expired: bool = False,
    explain: bool = False,
) -> Found:
    """What answers `text`, as `memory_query` finds it; its pages count as read by the caller."""
    vector, vector_failed = embedded(text, parts.question_vectors.vector)
    with parts.database.snapshot() as reading:
        question = Question(
            text=text,
            projects=projects_in(reading),
            now=parts.clock.now_us(),
            principal=current().principal,
            limit=limit,
            include_expired=include_expired,
            explain=explain,
            vector=vector,
            vector_failed=vector_failed,
        )
        if parts.reranking.is_on:
            question = widened(question)
        found = search(reading, question)
    if parts.reranking.is_on:
        reranked(found, question, parts.reranking.judge_for(current()))
    parts.accesses.note(current(), [id_bytes(hit.id) for hit in found.hits if not hit.is_turn])
    return found


def _answered(parts: Parts, asked: Asked, headers: dict[str, str]) -> Response:
    if not 1 <= asked.limit <= limits.RESULTS_MAX:
        raise Invalid(f"limit is a number from 1 to {limits.RESULTS_MAX}, not {asked.limit}")
    found = found_for(
        parts,
        (asked.q or asked.query).strip(),
        lambda reading: _projects(reading, asked),
        limit=asked.limit,
        include_expired=asked.include_expired,
        explain=asked.explain,
    )
    hits = [*map(_shaped, found.hits), *map(_raw_shaped, found.raw_hits)]
    if found.streams_failed:
        headers = {**headers, STREAMS_FAILED: ", ".join(found.streams_failed)}
    return json_answer({"hits": hits, **_explained(found)} if asked.explain else hits, headers=headers)


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


def _shaped(hit: Hit) -> dict[str, Any]:
    said = {"session_id": hit.session_id, "event_id": hit.event_id, "speaker": hit.speaker}
    return _placed(hit) | {
        "path": hit.path,
        **{name: value for name, value in said.items() if value is not None},
        **({} if hit.score_details is None else {"score_details": hit.score_details}),
    }


def _raw_shaped(hit: RawHit) -> dict[str, Any]:
    """What a tool did, asked only where nothing else answers."""
    return _placed(hit) | {"path": "", "session_id": hit.session_id, "event_id": hit.id}


def _placed(hit: Hit | RawHit) -> dict[str, Any]:
    return {
        "id": hit.id,
        "workspace": hit.workspace,
        "project": hit.project,
        "title": recalled.unfenced(hit.title),
        "kind": hit.kind,
        "updated_at": hit.date,
        "snippet": str(marked(hit.snippet)),
        # Lower is better, as ranks are.
        "rank": -hit.score,
    }


def _explained(found: Found) -> dict[str, Any]:
    return {
        "streams_active": found.streams_active,
        "streams_failed": found.streams_failed,
        "terms": found.terms,
        "hint": found.hint,
        "timings_ms": found.timings_ms,
    }

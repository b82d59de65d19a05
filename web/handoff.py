"""`GET /handoff`: what a session that starts is shown. A client prints the answer as it is, so it is never an error."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from flask import Blueprint, Response, request

from memory_core import limits
from memory_core.commands.handoffs import OfferHandoff
from memory_core.commands.scopes import ScopeRequest, resolve
from memory_core.domain.knowledge import RecallBounds
from memory_core.domain.project import Project
from memory_core.errors import CoreError, Forbidden, Invalid
from memory_core.ids import session_id_from
from memory_core.recall.brief import project_brief
from memory_core.recall.knowledge import bounds_said, frame_bytes, recalled_section
from memory_core.store import projects, sessions
from memory_core.store.database import Database, Snapshot
from memory_core.store.knowledge_lists import Scope
from web.auth import MAY, Caller, current, needs
from web.events import clean_session_key, client_of, told_of
from web.gate import Gate
from web.identity import CommandId

logger = logging.getLogger(__name__)


def blueprint(gate: Gate, database: Database, bounds: RecallBounds) -> Blueprint:
    routes = Blueprint("handoff", __name__)

    @routes.get("/handoff")
    @needs("capture")
    def _handoff() -> Response:
        query = request.args.to_dict()
        handoff = _or_nothing("handoff", lambda: _offered(gate, query, current()))
        known = _or_nothing(
            "knowledge", lambda: _known(gate, database, query, current(), bounds, len(handoff))
        )
        taken = len(handoff) + len(known)
        brief = _or_nothing("brief", lambda: _brief(gate, database, query, current(), taken))
        text = "\n".join(part for part in (handoff, known, brief) if part)
        return Response(text, mimetype="text/markdown", headers={"Cache-Control": "no-store"})

    return routes


def _or_nothing(what: str, make: Callable[[], str]) -> str:
    try:
        return make()
    except Exception as error:
        # The session starts without; a handoff's offer, if it was made, is made again when asked again.
        code = error.code if isinstance(error, CoreError) else type(error).__name__
        logger.warning(
            "What a session starts with could not be given.",
            extra={"action": "handoff_failed", "code": code, "part": what},
        )
        return ""


def _offered(gate: Gate, query: dict[str, str], caller: Caller) -> str:
    session_key = query.get("session_id", "").strip()
    if not session_key or len(session_key) > limits.SESSION_KEY_MAX_CHARS:
        raise Invalid("session_id is missing or too long")
    told = told_of(gate, query)
    del told["source"]
    command = OfferHandoff(
        session_id=clean_session_key(session_key, gate),
        agent=client_of(query).name,
        cwd=query.get("cwd") or None,
        project_strategy=told.pop("project_strategy") or "basename",
        **told,
    )
    # A late offer would tie the handoff to a session that went on without it.
    answer = gate.submit(
        command,
        CommandId(value=gate.ids.new(), is_foreign=False),
        caller,
        seconds=limits.HANDOFF_WAIT_SECONDS,
        valid_seconds=limits.HANDOFF_WAIT_SECONDS,
    )
    if answer.get("status") == "pending":
        logger.info("The writer did not answer a handoff in time.", extra={"action": "handoff_late"})
    return str(answer.get("markdown") or "")


def _known(
    gate: Gate,
    database: Database,
    query: dict[str, str],
    caller: Caller,
    bounds: RecallBounds,
    taken_chars: int,
) -> str:
    """What is known in the session's project, where its client asks for it: within what is set here and what the client says, and
    no longer than what a client shows whole together with the handoff."""
    if not _is_yes(query.get("recall")) or "read" not in MAY[caller.scope]:
        return ""
    said = bounds_said(
        *(query.get(name) or None for name in ("recall_entries", "recall_bytes", "recall_confidence"))
    )
    with database.snapshot() as reading:
        project = _project(gate, reading, query)
        if project is None:
            return ""
        name, now = f"{project.workspace}/{project.name}", gate.clock.now_us()
        room = limits.INJECTED_CONTEXT_MAX_CHARS - taken_chars - frame_bytes(name, now)
        within = bounds.tightened(said).tightened(replace(said, size_bytes=max(room, 0)))
        return recalled_section(reading, Scope(project_id=project.id), within, now=now, name=name)


def _is_yes(text: str | None) -> bool:
    return (text or "").lower() in ("1", "true", "yes", "on")


def _brief(gate: Gate, database: Database, query: dict[str, str], caller: Caller, taken_chars: int) -> str:
    """The project's brief where the client asks for one: as long as it says, and not longer than what a client shows whole
    together with the handoff, unless it says so."""
    if not _is_yes(query.get("briefing")):
        return ""
    if "read" not in MAY[caller.scope]:
        raise Forbidden(f"a brief is made of pages, which a token of scope {caller.scope!r} may not read")
    wanted = _budget(query.get("briefing_budget"))
    room = min(wanted, max(wanted, limits.INJECTED_CONTEXT_MAX_CHARS) - taken_chars)
    if room < limits.BRIEF_MIN_CHARS:
        return ""
    with database.snapshot() as reading:
        project = _project(gate, reading, query)
        if project is None:
            return ""
        return project_brief(reading, project, now=gate.clock.now_us(), max_chars=room)


def _budget(text: str | None) -> int:
    given = (text or "").strip()
    chars = (
        int(given) if given.isascii() and given.isdigit() and len(given) < 10 else limits.BRIEF_DEFAULT_CHARS
    )
    return min(max(chars, limits.BRIEF_MIN_CHARS), limits.BRIEF_MAX_CHARS)


def _project(gate: Gate, reading: Snapshot, query: dict[str, str]) -> Project | None:
    """The project of the session, where it is known and none is named; else what an event from there would belong to."""
    told = told_of(gate, query)
    del told["source"]
    strategy = told.pop("project_strategy") or "basename"
    key = query.get("session_id", "").strip()
    if key and len(key) <= limits.SESSION_KEY_MAX_CHARS and not (told["workspace"] or told["project"]):
        row = sessions.one(reading, session_id_from(clean_session_key(key, gate)))
        if row is not None:
            found = projects.by_id(reading, row["project_id"])
            return None if found is None else Project.from_row(found)
    place = ScopeRequest(cwd=query.get("cwd") or None, strategy=strategy, **told)
    project_id = resolve(reading, place).project_id
    found = None if project_id is None else projects.by_id(reading, project_id)
    return None if found is None else Project.from_row(found)

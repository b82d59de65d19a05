"""`/api/v1`: tools by name for the command line, lists as bare arrays with their cursor in a `Link` header."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import urlencode

from flask import Blueprint, Response, request

from memory_core import limits
from memory_core.clock import rfc3339
from memory_core.commands.letters import DiscardDeadLetter, RetryDeadLetter
from memory_core.errors import Invalid, NotFound
from memory_core.ids import id_bytes, id_text
from memory_core.recall.scope import Asker, project_for
from memory_core.store import command_ids, handoffs, letters, sessions
from memory_core.store.database import Snapshot
from memory_core.store.letters import Letter
from web.answers import json_answer
from web.auth import current, needs
from web.bodies import parse_json, read_body
from web.calls import CALLER, CallContext
from web.parts import Parts

_STATES = {"sessions": ("open", "ended"), "handoffs": ("open", "offered", "accepted", "expired")}


def blueprint(parts: Parts) -> Blueprint:
    routes = Blueprint("api", __name__, url_prefix="/api/v1")

    @routes.post("/tools/<name>")
    @needs("read")
    def _tool(name: str) -> Response:
        body = read_body(request)
        arguments = parse_json(body) if body.strip() else {}
        if not isinstance(arguments, dict):
            raise Invalid("a tool's arguments are one JSON object")
        answer = parts.call(name, arguments, {**request.environ, CALLER: current()})
        return json_answer(answer, 202 if answer.get("status") == "pending" else 200)

    @routes.get("/status")
    @needs("read")
    def _status() -> Response:
        return json_answer(parts.vitals.read())

    @routes.get("/sessions")
    @needs("read")
    def _sessions() -> Response:
        state, limit = _state("sessions"), _limit()
        with parts.database.snapshot() as reading:
            rows = sessions.listed(
                reading,
                project_id=_project(reading),
                owner=current().principal,
                is_open=None if state is None else state == "open",
                before=_number("before"),
                limit=limit,
            )
        return _listed(
            [_session(row) for row in rows], limit, before=rows[-1]["last_event_at"] if rows else None
        )

    @routes.get("/handoffs")
    @needs("read")
    def _handoffs() -> Response:
        state, limit = _state("handoffs"), _limit()
        with parts.database.snapshot() as reading:
            rows = handoffs.listed(
                reading,
                project_id=_project(reading),
                state=state,
                owner=current().principal,
                before=_number("before"),
                limit=limit,
            )
        return _listed(
            [_handoff(row) for row in rows], limit, before=rows[-1]["created_at"] if rows else None
        )

    @routes.get("/commands/<text>")
    @needs("capture")
    def _command(text: str) -> Response:
        with parts.database.snapshot() as reading:
            row = command_ids.lookup(reading, current().principal, id_bytes(text))
        return json_answer(_command_state(text, row))

    @routes.get("/dead")
    @needs("admin")
    def _dead() -> Response:
        limit = _limit()
        with parts.database.snapshot() as reading:
            found = letters.dead(reading, after=_number("after") or 0, count=limit)
        return _listed([_letter(letter) for letter in found], limit, after=found[-1].seq if found else None)

    @routes.get("/dead/<text>")
    @needs("admin")
    def _one_dead(text: str) -> Response:
        with parts.database.snapshot() as reading:
            found = letters.dead_by_id(reading, id_bytes(text))
        if not found:
            raise NotFound(f"there is no dead letter {text[:64]}")
        return json_answer(_letter(found[0]) | {"body": _body_text(found[0])})

    @routes.post("/dead/<text>/retry")
    @needs("admin")
    def _retry(text: str) -> Response:
        return json_answer(
            _context(parts).submit(RetryDeadLetter(letter=text, principal=_given("principal")))
        )

    @routes.post("/dead/<text>/discard")
    @needs("admin")
    def _discard(text: str) -> Response:
        return json_answer(
            _context(parts).submit(DiscardDeadLetter(letter=text, principal=_given("principal")))
        )

    return routes


def _context(parts: Parts) -> CallContext:
    return CallContext(
        gate=parts.gate,
        database=parts.database,
        vitals=parts.vitals,
        accesses=parts.accesses,
        caller=current(),
        environ=request.environ,
    )


def _project(reading: Snapshot) -> bytes | None:
    """The project that the query names; None where it names none: then all are meant."""
    workspace, project = _given("workspace"), _given("project")
    if workspace is None and project is None:
        return None
    return project_for(reading, Asker(principal=current().principal), workspace, project).id


def _given(name: str) -> str | None:
    return request.args.get(name, "").strip() or None


def _state(what: str) -> str | None:
    state = _given("state")
    if state is not None and state not in _STATES[what]:
        raise Invalid(f"state is one of: {', '.join(_STATES[what])}")
    return state


def _limit() -> int:
    return max(1, min(_number("limit") or limits.LIST_DEFAULT, limits.LIST_MAX))


def _number(name: str) -> int | None:
    text = _given(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise Invalid(f"{name} is a whole number")
    return int(text)


def _listed(items: list[dict[str, Any]], limit: int, **cursor: int | None) -> Response:
    """A bare array; where the list may go on, the address of its next part."""
    (name, value), *_ = cursor.items()
    if len(items) < limit or value is None:
        return json_answer(items)
    query = {key: text for key, text in request.args.items() if key != name} | {name: str(value)}
    return json_answer(items, headers={"Link": f'<{request.path}?{urlencode(query)}>; rel="next"'})


def _session(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": id_text(row["id"]),
        "workspace": row["workspace"],
        "project": row["project"],
        "agent": row["agent"],
        "model": row["model"],
        "title": row["title"],
        "cwd": row["cwd"],
        "started_at": rfc3339(row["started_at"]),
        "last_event_at": rfc3339(row["last_event_at"]),
        "ended_at": _time(row["ended_at"]),
        "end_reason": row["end_reason"],
        "observation_count": row["observation_count"],
        "page": row["page_path"],
    }


def _handoff(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": id_text(row["id"]),
        "workspace": row["workspace"],
        "project": row["project"],
        "state": row["state"],
        "from_agent": row["from_agent"],
        "to_agent": row["to_agent"],
        "model": row["model"],
        "cwd": row["cwd"],
        "summary": row["summary"],
        **{name: json.loads(row[name]) for name in ("open_questions", "next_steps", "files_touched")},
        "created_at": rfc3339(row["created_at"]),
        "accepted_at": _time(row["accepted_at"]),
        "accepted_by": row["accepted_by_agent"],
    }


def _command_state(text: str, row: Mapping[str, Any] | None) -> dict[str, Any]:
    """`pending` also stands for a command that nobody ever sent: only what ended is known."""
    if row is None:
        return {"id": text, "status": "pending"}
    result = json.loads(row["result"]) if row["result"] is not None else None
    return {"id": text, "status": row["status"], "result": result}


def _letter(letter: Letter) -> dict[str, Any]:
    return {
        "id": id_text(letter.envelope.id),
        "name": letter.envelope.name,
        "principal": letter.envelope.principal,
        "cause": letter.reason,
        "error": letter.error,
        "attempts": letter.attempts,
        "recorded_at": rfc3339(letter.envelope.recorded_at),
        "created_at": rfc3339(letter.created_at),
    }


def _body_text(letter: Letter) -> Any:
    try:
        return json.loads(letter.envelope.body)
    except ValueError:
        return letter.envelope.body.decode("utf-8", "replace")


def _time(us: int | None) -> str | None:
    return rfc3339(cast("int", us)) if us is not None else None

"""`/api/v1`: tools by name for the command line, lists as bare arrays with their cursor in a `Link` header."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from flask import Blueprint, Response, request

from memory_core.clock import rfc3339
from memory_core.commands.letters import DiscardDeadLetter, RetryDeadLetter
from memory_core.errors import Invalid, NotFound
from memory_core.ids import id_bytes, id_text
from memory_core.store import command_ids, handoffs, letters, sessions
from memory_core.store.letters import Letter
from web import lists
from web.answers import json_answer, submitted
from web.auth import current, needs
from web.bodies import parse_json, read_body
from web.calls import CALLER, CallContext
from web.parts import Parts
from web.query import takes
from web.shapes import HANDOFF_STATES, handoff_shape, session_shape


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
        return submitted(answer)

    @routes.get("/status")
    @needs("read")
    def _status() -> Response:
        return json_answer(parts.vitals.read())

    @routes.get("/sessions")
    @needs("read")
    @takes("workspace", "project", "state", "cursor", "limit")
    def _sessions() -> Response:
        state, limit = lists.state("open", "ended"), lists.limit()
        with parts.database.snapshot() as reading:
            rows = sessions.listed(
                reading,
                project_id=lists.project(reading),
                owner=current().principal,
                is_open=None if state is None else state == "open",
                before=lists.moment_and_id(),
                limit=limit,
            )
        last = lists.after_row(rows[-1]["last_event_at"], rows[-1]["id"]) if rows else None
        return lists.listed([session_shape(row) for row in rows], limit, cursor=last)

    @routes.get("/handoffs")
    @needs("read")
    @takes("workspace", "project", "state", "before", "limit")
    def _handoffs() -> Response:
        state, limit = lists.state(*HANDOFF_STATES), lists.limit()
        with parts.database.snapshot() as reading:
            rows = handoffs.listed(
                reading,
                project_id=lists.project(reading),
                state=state,
                owner=current().principal,
                before=lists.number("before"),
                limit=limit,
            )
        return lists.listed(
            [handoff_shape(row) for row in rows], limit, before=rows[-1]["created_at"] if rows else None
        )

    @routes.get("/commands/<text>")
    @needs("capture")
    def _command(text: str) -> Response:
        with parts.database.snapshot() as reading:
            row = command_ids.lookup(reading, current().principal, id_bytes(text))
        return json_answer(_command_state(text, row))

    @routes.get("/dead")
    @needs("admin")
    @takes("after", "limit")
    def _dead() -> Response:
        limit = lists.limit()
        with parts.database.snapshot() as reading:
            found = letters.dead(reading, after=lists.number("after") or 0, count=limit)
        return lists.listed(
            [_letter(letter) for letter in found], limit, after=found[-1].seq if found else None
        )

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
    @takes("principal")
    def _retry(text: str) -> Response:
        return json_answer(
            _context(parts).submit(RetryDeadLetter(letter=text, principal=lists.given("principal")))
        )

    @routes.post("/dead/<text>/discard")
    @needs("admin")
    @takes("principal")
    def _discard(text: str) -> Response:
        return json_answer(
            _context(parts).submit(DiscardDeadLetter(letter=text, principal=lists.given("principal")))
        )

    return routes


def _context(parts: Parts) -> CallContext:
    return parts.context(current(), request.environ)


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

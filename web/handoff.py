"""`GET /handoff`: what a session that starts is shown. A client prints the answer as it is, so it is never an error."""

from __future__ import annotations

import logging

from flask import Blueprint, Response, request

from memory_core import limits
from memory_core.commands.handoffs import OfferHandoff
from memory_core.errors import CoreError, Invalid
from web.auth import Caller, current, needs
from web.events import clean_session_key, client_of, told_of
from web.gate import Gate
from web.identity import CommandId

logger = logging.getLogger(__name__)


def blueprint(gate: Gate) -> Blueprint:
    routes = Blueprint("handoff", __name__)

    @routes.get("/handoff")
    @needs("capture")
    def _handoff() -> Response:
        try:
            text = _offered(gate, request.args.to_dict(), current())
        except Exception as error:
            # The session starts without a handoff; the offer, if it was made, is made again when asked again.
            code = error.code if isinstance(error, CoreError) else type(error).__name__
            logger.warning("A handoff could not be given.", extra={"action": "handoff_failed", "code": code})
            text = ""
        return Response(text, mimetype="text/markdown", headers={"Cache-Control": "no-store"})

    return routes


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

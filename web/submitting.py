"""Sending a command on behalf of this request's caller, and answering with what came of it."""

from __future__ import annotations

from flask import Response, request

from web.answers import submitted
from web.auth import current
from web.parts import Parts


def submit(parts: Parts, command: object) -> Response:
    """What the command answered; 202 where the wait was over first. Raises its refusal."""
    return submitted(parts.context(current(), request.environ).submit(command))

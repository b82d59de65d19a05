"""`/api/v1/models`: how models stand, what they used, and a person's word on them."""

from __future__ import annotations

from typing import Annotated

import msgspec
from flask import Blueprint, Response, request
from msgspec import Meta

from memory_core import limits
from memory_core.commands.model_control import CheckModels, PauseModels, ResumeModels
from memory_core.domain.budget import days_before
from memory_core.errors import Invalid
from memory_core.store import model_usage
from web import lists, model_state
from web.answers import json_answer
from web.auth import needs
from web.bodies import parse_json, read_body
from web.parts import Parts
from web.query import takes
from web.submitting import submit


class _Pause(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    reason: Annotated[str, Meta(max_length=limits.PAUSE_REASON_MAX_CHARS)] = ""


def blueprint(parts: Parts) -> Blueprint:
    routes = Blueprint("api_models", __name__, url_prefix="/api/v1/models")
    configured = model_state.Configured(parts.settings)

    @routes.get("")
    @needs("read")
    def _state() -> Response:
        with parts.database.snapshot() as reading:
            return json_answer(model_state.whole(reading, configured, parts.clock.now_us()))

    @routes.get("/usage")
    @needs("read")
    @takes("workspace", "project", "days")
    def _usage() -> Response:
        asked = lists.number("days")
        days = 1 if asked is None else asked
        if not 1 <= days <= limits.USAGE_DAYS_MAX:
            raise Invalid(f"days is a number from 1 to {limits.USAGE_DAYS_MAX}")
        first = days_before(parts.clock.now_us(), days - 1)
        with parts.database.snapshot() as reading:
            rows = model_usage.listed(
                reading, first, scope=lists.project(reading), limit=limits.USAGE_ROWS_MAX
            )
        return json_answer([model_state.usage_shape(row) for row in rows])

    @routes.post("/pause")
    @needs("write")
    def _pause() -> Response:
        return submit(parts, PauseModels(reason=_reason()))

    @routes.post("/resume")
    @needs("write")
    def _resume() -> Response:
        return submit(parts, ResumeModels())

    @routes.post("/test")
    @needs("admin")
    def _test() -> Response:
        if not configured.has_provider:
            raise Invalid(
                "no provider is configured: name one in the configuration file under [models]"
                " (provider, embed_provider) and start the server again"
            )
        return submit(parts, CheckModels())

    return routes


def _reason() -> str:
    body = read_body(request)
    if not body.strip():
        return ""
    try:
        return msgspec.convert(parse_json(body), type=_Pause).reason
    except msgspec.ValidationError as error:
        raise Invalid(f"the body does not fit: {error}") from error

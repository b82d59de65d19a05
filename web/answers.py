"""Answers of the gate: the one table from errors to HTTP, and the JSON that says what to do next."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from typing import Any

import msgspec
from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException

from memory_core import errors
from memory_core.errors import CoreError, ReplayTooLarge, ReusedId, StaleLease, Unavailable

logger = logging.getLogger(__name__)

#: Error to status; the first class that fits counts.
STATUS: tuple[tuple[type[CoreError], int], ...] = (
    (errors.Invalid, 400),
    (errors.Forbidden, 403),
    (errors.NotFound, 404),
    (errors.Conflict, 409),
    (errors.Corrupt, 409),
    (errors.ReplayTooLarge, 413),
    (errors.TooLarge, 413),
    (errors.Unavailable, 503),
    (errors.OutcomeUnknown, 504),
    (errors.StorageStopped, 503),
    (errors.SchemaTooNew, 503),
    (errors.NotAlone, 503),
)
_ADVICE = {
    413: "Nothing was kept. Send less at once.",
    429: "Nothing was kept. Send the same id again after Retry-After seconds.",
    503: "Nothing was kept. Send the same id again later.",
    504: "It is unknown whether this was kept. Send the same id again.",
}


class TooMuch(CoreError):
    """A mark of the backlog, of the waiters or of the disk is reached; nothing was kept."""

    code = "too_much"

    def __init__(self, reason: str, *, retry_after_seconds: float) -> None:
        super().__init__(f"too much is waiting ({reason}); nothing was kept")
        self.reason = reason
        self.retry_after_seconds = retry_after_seconds


def status_of(error: CoreError) -> int:
    if isinstance(error, TooMuch):
        return 429
    return next((status for kind, status in STATUS if isinstance(error, kind)), 500)


def json_answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """`value` as JSON; nothing that a browser or proxy may keep."""
    response = Response(msgspec.json.encode(value), status, content_type="application/json")
    response.headers["Cache-Control"] = "no-store"
    for name, text in (headers or {}).items():
        response.headers[name] = text
    return response


def submitted(answer: Mapping[str, Any]) -> Response:
    """What a command that was waited for answered; 202 where the wait was over first."""
    return json_answer(answer, 202 if answer.get("status") == "pending" else 200)


def error_answer(error: CoreError) -> Response:
    """The answer that stands for an error of ours. What is unexpected is logged and not told."""
    status = status_of(error)
    message = (
        str(error) if status < 500 or status in (503, 504) else "an error that nobody expected; see the log"
    )
    body: dict[str, Any] = {**error.detail, "error": message, "code": error.code}
    if status == 504:
        body["outcome"] = "unknown"
    if isinstance(error, StaleLease):
        body["advice"] = "Stop, and forget the result: somebody else has this now, or it has ended."
    elif isinstance(error, ReusedId):
        body["advice"] = "Nothing was kept: this id was used with another body. Use a new id for a new event."
    elif status in _ADVICE and not isinstance(error, ReplayTooLarge):
        body["advice"] = _ADVICE[status]
    return json_answer(body, status, _retry_after(error, status))


def _retry_after(error: CoreError, status: int) -> dict[str, str]:
    if isinstance(error, Unavailable | TooMuch):
        return {"Retry-After": str(max(1, math.ceil(error.retry_after_seconds)))}
    return {"Retry-After": "1"} if status in (503, 504) else {}


def install(app: Flask) -> None:
    """Give every error of every route its JSON answer."""

    @app.errorhandler(CoreError)
    def _core(error: CoreError) -> Response:
        if status_of(error) == 500:
            logger.error("A request failed.", exc_info=error, extra=_about_request("request_failed"))
        return error_answer(error)

    @app.errorhandler(HTTPException)
    def _http(error: HTTPException) -> Response:
        if isinstance(error.response, Response):
            return error.response
        status = error.code or 500
        body = {"error": error.description or error.name, "code": error.name.lower().replace(" ", "_")}
        if status == 404:
            body["error"] = f"there is nothing at {request.path[:200]}; docs/http.md lists what there is"
        if status in _ADVICE:
            body["advice"] = _ADVICE[status]
        response = json_answer(body, status)
        for name, value in error.get_headers():
            if name.lower() not in ("content-type", "content-length"):
                response.headers[name] = value
        return response

    @app.errorhandler(Exception)
    def _unexpected(error: Exception) -> Response:
        logger.error("A request failed.", exc_info=error, extra=_about_request("request_failed"))
        return error_answer(CoreError())


def _about_request(action: str) -> dict[str, Any]:
    # The path only: a query may hold what nobody should log.
    return {"action": action, "method": request.method, "path": request.path[:200]}

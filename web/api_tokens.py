"""`/api/v1/tokens`: giving access tokens out and taking them back. A token's text is in one answer and nowhere else."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, Response, request

from memory_core import limits
from memory_core.clock import MICROSECONDS, rfc3339
from memory_core.commands.tokens import CreateToken, RevokeToken
from memory_core.domain.token import mint, parse
from memory_core.errors import Conflict, CoreError, Invalid
from memory_core.store import principals
from memory_core.store.statement import Row
from web.answers import json_answer, submitted
from web.auth import current, needs
from web.bodies import parse_json, read_body
from web.parts import Parts

_DAY_US = 24 * 3600 * MICROSECONDS


def blueprint(parts: Parts) -> Blueprint:
    routes = Blueprint("tokens", __name__, url_prefix="/api/v1/tokens")

    @routes.get("")
    @needs("admin")
    def _list() -> Response:
        with parts.database.snapshot() as reading:
            rows = principals.listed(reading, limit=limits.TOKENS_MAX)
        return json_answer([_shape(row, parts.gate.clock.now_us()) for row in rows])

    @routes.post("")
    @needs("admin")
    def _create() -> Response:
        given = _given()
        token = mint()
        answer = parts.context(current(), request.environ).submit(
            CreateToken(
                public_id=token.public_id,
                digest=token.digest,
                scope=given["scope"],
                name=given["name"],
                principal=given.get("principal")
                or (principals.POOL if given["scope"] == "pool" else principals.OWNER),
                expires_at=_expiry(given.get("expires_days"), parts.gate.clock.now_us()),
            )
        )
        return submitted({**answer, "id": token.public_id, "token": token.text})

    @routes.post("/<text>/revoke")
    @needs("admin")
    def _revoke(text: str) -> Response:
        if text == _first_token(parts):
            raise Conflict(
                f"this is the token in {parts.settings.token_file}, which this server lets in at any rate; delete that file and "
                "restart memoryd, which makes another one, then revoke this one"
            )
        return submitted(parts.context(current(), request.environ).submit(RevokeToken(which=text)))

    return routes


def _given() -> dict[str, Any]:
    body: Any = parse_json(read_body(request))
    known = {"scope": str, "name": str, "principal": str, "expires_days": int}
    if not isinstance(body, dict) or set(body) - set(known):
        raise Invalid(f"the body is a JSON object with: {', '.join(known)}")
    for name in ("scope", "name"):
        if not body.get(name):
            raise Invalid(f"{name} is missing")
    for name, value in body.items():
        if value is not None and type(value) is not known[name]:
            raise Invalid(f"{name} is of type {known[name].__name__}")
    return body


def _expiry(days: int | None, now: int) -> int | None:
    if days is None:
        return None
    if not 1 <= days <= limits.TOKEN_DAYS_MAX:
        raise Invalid(f"expires_days is 1 to {limits.TOKEN_DAYS_MAX}")
    return now + days * _DAY_US


def _first_token(parts: Parts) -> str | None:
    try:
        return parse(parts.settings.token_file.read_text(encoding="ascii").strip())[0]
    except (OSError, UnicodeDecodeError, CoreError):
        return None


def _shape(row: Row, now: int) -> dict[str, Any]:
    expires, revoked = row["expires_at"], row["revoked_at"]
    is_over = expires is not None and expires <= now
    return {
        "id": row["public_id"],
        "name": row["name"],
        "scope": row["scope"],
        "principal": row["principal"],
        "state": "revoked" if revoked is not None else "expired" if is_over else "live",
        "created_at": rfc3339(row["created_at"]),
        "expires_at": rfc3339(expires) if expires is not None else None,
        "revoked_at": rfc3339(revoked) if revoked is not None else None,
    }

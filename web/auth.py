"""Who asks: bearer tokens, looked up by their public id and compared in constant time."""

from __future__ import annotations

import base64
import binascii
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from flask import Flask, Request, Response, current_app, g, request
from werkzeug.exceptions import Unauthorized

from memory_core import limits
from memory_core.clock import Clock
from memory_core.domain.token import digests_equal, parse
from memory_core.errors import CoreError, Forbidden, Invalid
from web.answers import json_answer

logger = logging.getLogger(__name__)

COOKIE = "memoryd_auth"
#: What a token of each scope may do. A capture token, which lies on every laptop, cannot read pages.
MAY: dict[str, frozenset[str]] = {
    "admin": frozenset({"admin", "write", "read", "capture", "metrics"}),
    "write": frozenset({"write", "read", "capture", "metrics"}),
    "read": frozenset({"read", "metrics"}),
    "capture": frozenset({"capture"}),
    "pool": frozenset({"pool"}),
    #: Of the one token that stands in a file for a scraper; it is in no table.
    "metrics": frozenset({"metrics"}),
}
P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, kw_only=True)
class TokenRecord:
    """A stored token: whose it is, what it may do, and until when. Times are UTC microseconds."""

    public_id: str
    principal: str
    scope: str
    digest: bytes
    project_id: bytes | None = None
    expires_at: int | None = None
    revoked_at: int | None = None


@dataclass(frozen=True, kw_only=True)
class Caller:
    """Who asks and what for this token may be used."""

    principal: str
    scope: str


FindToken = Callable[[str], TokenRecord | None]


class Tokens:
    """Stored tokens with a cache of seconds: a revoked token stops working within `TOKEN_CACHE_SECONDS`.

    While the database is away the last answers keep counting, because hooks must not depend on it;
    `at_hand` is asked where there is none (the token that the first start wrote).
    """

    def __init__(self, find: FindToken, clock: Clock, at_hand: FindToken = lambda _: None) -> None:
        self._find = find
        self._at_hand = at_hand
        self._clock = clock
        self._lock = threading.Lock()
        self._cache: dict[str, tuple[float, TokenRecord | None]] = {}

    def caller(self, text: str) -> Caller | None:
        """The caller whose token this is, or None. Never raises for what a stranger sends."""
        try:
            public_id, digest = parse(text)
        except Invalid:
            return None
        record = self._record(public_id)
        # An unknown id is compared too: the time tells nothing about which ids there are.
        stored = record.digest if record is not None else bytes(len(digest))
        if not digests_equal(stored, digest) or record is None:
            return None
        now = self._clock.now_us()
        if record.revoked_at is not None or (record.expires_at is not None and record.expires_at <= now):
            return None
        return Caller(principal=record.principal, scope=record.scope)

    def _record(self, public_id: str) -> TokenRecord | None:
        now = self._clock.monotonic()
        known = self._cache.get(public_id)
        if known is not None and known[0] > now:
            return known[1]
        try:
            record = self._find(public_id)
        except CoreError:
            record = known[1] if known is not None else self._at_hand(public_id)
        with self._lock:
            if len(self._cache) >= limits.TOKENS_CACHED_MAX:
                self._cache.clear()
            self._cache[public_id] = (now + limits.TOKEN_CACHE_SECONDS, record)
        return record


def install(app: Flask, tokens: Tokens) -> None:
    app.extensions["memoryd.tokens"] = tokens


def needs(scope: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorator of a view: refuse (401, 403) a caller whose token may not do `scope`."""

    def decorate(view: Callable[P, R]) -> Callable[P, R]:
        @wraps(view)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
            g.caller = allowed_caller(request, scope)
            return view(*args, **kwargs)

        return guarded

    return decorate


def allowed_caller(asked: Request, scope: str) -> Caller:
    """The caller behind a request. Raises `Unauthorized` or `Forbidden`."""
    tokens: Tokens = current_app.extensions["memoryd.tokens"]
    for text, source in _candidates(asked):
        caller = tokens.caller(text)
        if caller is None:
            continue
        if scope not in MAY.get(caller.scope, frozenset()):
            raise Forbidden(f"a token of scope {caller.scope!r} may not do this; it needs {scope!r}")
        if source == "basic":
            g.set_cookie = text
        return caller
    raise Unauthorized(response=_unauthorised(asked))


def _candidates(asked: Request) -> list[tuple[str, str]]:
    """Tokens that the request offers; a browser's ways (Basic, cookie) count for GET only."""
    header = asked.headers.get("Authorization", "")
    kind, _, value = header.partition(" ")
    found = [(value.strip(), "bearer")] if kind.lower() == "bearer" else []
    if asked.method not in ("GET", "HEAD"):
        return found
    if kind.lower() == "basic":
        found.append((_basic_password(value), "basic"))
    # A cookie rides along with requests that other sites start.
    if asked.headers.get("Sec-Fetch-Site", "none") in ("none", "same-origin") and COOKIE in asked.cookies:
        found.append((asked.cookies[COOKIE], "cookie"))
    return found


def _basic_password(value: str) -> str:
    try:
        text = base64.b64decode(value, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""
    return text.partition(":")[2]


def _unauthorised(asked: Request) -> Response:
    body = {
        "error": "auth required",
        "code": "unauthenticated",
        "advice": "Send Authorization: Bearer with the token of this server; `memoryd up` says where it lies.",
    }
    answer = json_answer(body, 401)
    answer.headers.add("WWW-Authenticate", 'Bearer realm="memoryd"')
    if asked.method == "GET":
        answer.headers.add("WWW-Authenticate", 'Basic realm="memoryd", charset="UTF-8"')
    return answer


def remember_browser(response: Response) -> Response:
    """After a GET with Basic: a cookie, so that the browser asks once."""
    text = g.pop("set_cookie", None)
    if text is not None and COOKIE not in request.cookies:
        keep_cookie(response, text)
    return response


def keep_cookie(response: Response, text: str) -> None:
    """Let a browser bring the token with every GET of this site's own pages; no script can read it."""
    response.set_cookie(
        COOKIE,
        text,
        max_age=limits.COOKIE_SECONDS,
        path="/",
        httponly=True,
        samesite="Strict",
        secure=request.is_secure,
    )


def file_token(read: Callable[[], str], *, principal: str = "owner", scope: str = "admin") -> FindToken:
    """A token that stands in a file. That of the first start lets hooks in while the database cannot be asked."""

    def find(public_id: str) -> TokenRecord | None:
        try:
            own_id, digest = parse(read().strip())
        except (OSError, Invalid):
            return None
        if own_id != public_id:
            return None
        return TokenRecord(public_id=own_id, principal=principal, scope=scope, digest=digest)

    return find


def first_of(*finds: FindToken) -> FindToken:
    """The token that the first of these knows."""

    def find(public_id: str) -> TokenRecord | None:
        return next((record for one in finds if (record := one(public_id)) is not None), None)

    return find


def current() -> Caller:
    caller: Any = g.caller
    return caller

"""`/ui`: the wiki in a browser. Plain pages that need no script; what is stored is shown as text, never run.

State is changed by signing in and out alone. Everything else is a GET.
"""

from __future__ import annotations

import re
from typing import Any

from flask import (
    Blueprint,
    Flask,
    Response,
    current_app,
    g,
    make_response,
    redirect,
    render_template,
    request,
    url_for,
)
from werkzeug.exceptions import HTTPException, Unauthorized

from memory_core import limits
from memory_core.errors import CoreError, Forbidden
from web import lists, ui_jobs, ui_knowledge, ui_sessions, ui_wiki
from web.answers import status_of
from web.auth import COOKIE, MAY, Tokens, allowed_caller, keep_cookie
from web.parts import Parts
from web.query import takes, takes_anything
from web.times import Times, lasting

_POLICY = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
#: Where a sign-in may lead: pages of this very server.
_OWN = re.compile(r"/ui(?:[/?][^\\\s]*)?")
_TITLES = {400: "That does not work", 403: "Not with this token", 404: "There is no such page"}


def blueprint(parts: Parts) -> Blueprint:
    routes = Blueprint(
        "ui",
        __name__,
        url_prefix="/ui",
        template_folder="templates",
        static_folder="static",
        static_url_path="/static",
    )
    _signing(routes)
    ui_wiki.add(routes, parts)
    ui_sessions.add(routes, parts)
    ui_knowledge.add(routes, parts)
    ui_jobs.add(routes, parts)
    routes.register_error_handler(Unauthorized, _to_sign_in)
    routes.register_error_handler(HTTPException, _told)
    routes.register_error_handler(CoreError, _told)
    routes.after_request(_hardened)
    routes.context_processor(lambda: {"is_signed_in": "caller" in g})
    routes.record_once(lambda state: _filters(state.app, parts))

    @routes.get("/<path:_>")
    @takes_anything
    def _unknown(_: str) -> Response:
        return _message(404, "Its address may be mistyped, or what it showed is gone.")

    return routes


def front_door(app: Flask) -> None:
    """`GET /`: where to go."""

    @app.get("/")
    def _front() -> Response:
        return Response(
            "memoryd is here. A browser goes to /ui, an agent to /mcp, a program to /api/v1.\n",
            content_type="text/plain; charset=utf-8",
        )


def _filters(app: Any, parts: Parts) -> None:
    times = Times(parts.clock)
    app.jinja_env.filters.update(
        when=times.when, clock=times.clock, day=times.day, told=times.told, lasting=lasting, **ui_wiki.FILTERS
    )


def _signing(routes: Blueprint) -> None:
    @routes.get("/sign-in")
    @takes("next")
    def sign_in() -> Response:
        try:
            g.caller = allowed_caller(request, "read")
        except (Unauthorized, Forbidden):
            return _form(lists.given("next") or "")
        return make_response(render_template("sign_in.html", principal=g.caller.principal))

    @routes.post("/sign-in")
    def _signed_in() -> Response:
        request.max_content_length = limits.SIGN_IN_MAX_BYTES
        _check_own_form()
        text, following = request.form.get("token", "").strip(), request.form.get("next", "")
        tokens: Tokens = current_app.extensions["memoryd.tokens"]
        caller = tokens.caller(text)
        if caller is None:
            return _form(following, "This is not a token of this server.", 401)
        if "read" not in MAY.get(caller.scope, frozenset()):
            return _form(following, f"A token of scope {caller.scope!r} may not read pages.", 403)
        answer = make_response(redirect(_own(following), 303))
        keep_cookie(answer, text)
        return answer

    @routes.post("/sign-out")
    def sign_out() -> Response:
        _check_own_form()
        answer = make_response(redirect(url_for("ui.sign_in"), 303))
        answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="Strict")
        return answer


def _check_own_form() -> None:
    """The form of another site signs nobody in or out (an `Origin` of elsewhere never comes so far)."""
    if request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
        raise Forbidden("this form was sent by another site")


def _own(address: str) -> str:
    return address if _OWN.fullmatch(address) else url_for("ui.home")


def _form(following: str, wrong: str = "", status: int = 200) -> Response:
    return make_response(render_template("sign_in.html", next=_own(following), wrong=wrong), status)


def _to_sign_in(_: Exception) -> Any:
    following = request.full_path.rstrip("?")
    return redirect(url_for("ui.sign_in", next=following), 303)


def _told(error: Exception) -> Response:
    """Every error as a page: what was wrong, and nothing of the inside."""
    if isinstance(error, CoreError):
        status, text = status_of(error), str(error)
    else:
        status, text = getattr(error, "code", None) or 500, getattr(error, "description", None) or ""
    if status == 500:
        raise error
    return _message(status, text)


def _message(status: int, text: str) -> Response:
    title = _TITLES.get(status, "Not now" if status >= 500 else "That does not work")
    return make_response(render_template("message.html", title=title, text=text), status)


def _hardened(response: Response) -> Response:
    response.headers["Content-Security-Policy"] = _POLICY
    response.headers["Cross-Origin-Opener-Policy"] = "same-origin"
    # Without a referrer a browser sends forms with `Origin: null`, which the gate refuses; only these have forms that post.
    is_form = request.endpoint == "ui.sign_in"
    response.headers["Referrer-Policy"] = "same-origin" if is_form else "no-referrer"
    if request.endpoint != "ui.static":
        response.headers["Cache-Control"] = "no-store"
    return response

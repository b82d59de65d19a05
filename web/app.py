"""The gate as a WSGI application: `gunicorn --config python:web.gunicorn_conf 'web.app:create_app()'`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from flask import Flask

from memory_core.config import Settings, load
from memory_core.recall.knowledge import read_bounds
from web import (
    answers,
    api,
    api_embeddings,
    api_jobs,
    api_knowledge,
    api_models,
    api_search,
    api_tokens,
    api_versions,
    api_wiki,
    assets,
    auth,
    durable,
    durable_checkpoints,
    durable_compactions,
    durable_deletion,
    durable_journal,
    durable_turns,
    handoff,
    history,
    hooks,
    imports,
    mcp,
    metrics,
    pool,
    pool_models,
    query,
    ui,
    wiki,
)
from web.answers import json_answer
from web.auth import remember_browser
from web.bodies import READ_MAX_BYTES
from web.names import Names
from web.parts import Parts, build
from web.probes import Progress
from web.route import Route
from workers import exit_codes


def create_app(settings: Settings | None = None, parts: Parts | None = None) -> Flask:
    """The application, not yet connected to anything; `extensions["memoryd.start"]` starts its threads
    once the process has forked."""
    if settings is None:
        # Nobody above catches it: gunicorn would print a traceback, and the supervisor start it again and again.
        with exit_codes.said_in_a_line():
            return create_app(load())
    parts = parts or build(settings)
    app = Flask("web", static_folder=None)
    app.url_rule_class = Route
    app.config["MAX_CONTENT_LENGTH"] = READ_MAX_BYTES
    answers.install(app)
    query.install(app)
    auth.install(app, parts.tokens)
    app.after_request(_hardened)
    app.after_request(remember_browser)
    for routes in _blueprints(parts):
        app.register_blueprint(routes)
    ui.front_door(app)
    app.wsgi_app = Door(app.wsgi_app, parts.names, parts.progress)
    app.extensions["memoryd.start"] = parts.start
    app.extensions["memoryd.stop"] = parts.stop
    return app


def _blueprints(parts: Parts) -> list[Any]:
    return [
        hooks.blueprint(parts.gate),
        handoff.blueprint(parts.gate, parts.database, read_bounds(parts.settings)),
        api_knowledge.blueprint(parts),
        api.blueprint(parts),
        api_tokens.blueprint(parts),
        wiki.blueprint(parts),
        api_wiki.blueprint(parts),
        api_versions.blueprint(parts),
        api_search.blueprint(parts),
        history.blueprint(parts),
        api_jobs.blueprint(parts),
        api_models.blueprint(parts),
        api_embeddings.blueprint(parts),
        pool.blueprint(parts),
        pool_models.blueprint(parts),
        durable.blueprint(parts),
        durable_compactions.blueprint(parts),
        durable_turns.blueprint(parts),
        assets.blueprint(parts),
        durable_deletion.blueprint(parts),
        durable_journal.blueprint(parts),
        durable_checkpoints.blueprint(parts),
        imports.blueprint(parts),
        mcp.blueprint(mcp.Mount(lambda: _mcp_server(parts))),
        ui.blueprint(parts),
        metrics.blueprint(parts),
    ]


def _mcp_server(parts: Parts) -> Any:
    # Its libraries are as large as all the rest of the gate, and most starts of it serve no agent at once.
    from web.mcp_server import make_server

    return make_server(parts.catalog, parts.call, parts.version)


class Door:
    """What every request passes first, whatever its path: the checks of names, and the count of those under way."""

    def __init__(self, inner: Callable[..., Iterable[bytes]], names: Names, progress: Progress) -> None:
        self._inner = inner
        self._names = names
        self._progress = progress

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        self._progress.begin()
        try:
            refusal = self._names.refusal(environ)
            if refusal is not None:
                status, reason = refusal
                answer = json_answer({"error": reason, "code": "forbidden_name"}, status)
                return _Sent(answer(environ, start_response), self._progress)
            return _Sent(self._inner(environ, start_response), self._progress)
        except BaseException:
            self._progress.end()
            raise


class _Sent:
    """An answer on its way: a streamed one is work until its last piece is sent, and each piece is progress."""

    def __init__(self, answer: Iterable[bytes], progress: Progress) -> None:
        self._answer = answer
        self._progress = progress
        self._is_over = False

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._answer:
            self._progress.moved()
            yield piece

    def close(self) -> None:
        try:
            close = getattr(self._answer, "close", None)
            if close is not None:
                close()
        finally:
            if not self._is_over:
                self._is_over = True
                self._progress.end()


def _hardened(response: Any) -> Any:
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response

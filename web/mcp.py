"""`POST /mcp`: the official MCP server behind the gate's own checks, as plain JSON answers.

No stream is ever held open: a thread pool that serves long-lived streams is a server that stands still.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import AsyncIterator, Callable, Iterable
from io import BytesIO
from typing import TYPE_CHECKING, Any, cast

from flask import Blueprint, Response, request
from werkzeug.exceptions import MethodNotAllowed

from memory_core import limits
from web.auth import current as current_caller
from web.auth import needs
from web.bodies import read_body, without_half_characters
from web.calls import CALLER
from web.flavors import input_shape
from web.query import takes

if TYPE_CHECKING:
    from a2wsgi import ASGIMiddleware
    from mcp.server.lowlevel.server import Server

logger = logging.getLogger(__name__)

_JSON = "application/json"
_STREAM = "text/event-stream"


class Mount:
    """The MCP server as a WSGI application with one event loop of its own, loaded and started at the first request.

    Not earlier: the process forks after the application is built, and a loop's thread does not survive that.
    """

    def __init__(self, make: Callable[[], Server[Any]]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._app: ASGIMiddleware | None = None

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        return self._started()(cast("Any", environ), start_response)

    def _started(self) -> ASGIMiddleware:
        with self._lock:
            if self._app is None:
                loop = asyncio.new_event_loop()
                threading.Thread(target=loop.run_forever, name="mcp", daemon=True).start()
                self._app = asyncio.run_coroutine_threadsafe(_entered(self._make), loop).result()
            return self._app


async def _entered(make: Callable[[], Server[Any]]) -> ASGIMiddleware:
    from a2wsgi import ASGIMiddleware

    server = make()
    app = server.streamable_http_app(
        streamable_http_path="/",
        json_response=True,
        stateless_http=True,
        max_request_body_size=limits.REQUEST_BODY_MAX_BYTES,
        # Host and Origin were checked for every route alike.
        host="",
    )
    ready = asyncio.get_running_loop().create_future()

    async def live() -> None:
        # One task enters and holds the session manager: its task group is bound to the task that opened it.
        async with _lifespan(app):
            ready.set_result(None)
            await asyncio.Event().wait()

    task = asyncio.create_task(live())
    app.state.memoryd_lifespan = task
    await ready
    return ASGIMiddleware(
        cast("Any", app), wait_time=limits.MCP_AFTERWORK_SECONDS, loop=asyncio.get_running_loop()
    )


@contextlib.asynccontextmanager
async def _lifespan(app: Any) -> AsyncIterator[None]:
    async with app.router.lifespan_context(app):
        yield


def blueprint(mount: Mount) -> Blueprint:
    routes = Blueprint("mcp", __name__)

    @routes.route("/mcp", methods=["GET", "HEAD", "PUT", "PATCH", "DELETE"])
    def _other_methods() -> Response:
        raise MethodNotAllowed(valid_methods=["POST"])

    @routes.post("/mcp")
    @needs("read")
    @takes("flavor")
    def _post() -> Response:
        # A wrong address is told now, not when the tools are listed.
        input_shape(request.environ.get("QUERY_STRING", ""))
        body = without_half_characters(read_body(request))
        environ = _inner_environ(request.environ, body)
        environ[CALLER] = current_caller()
        answer = cast("Response", Response.from_app(mount, environ, buffered=True))
        answer.headers["Cache-Control"] = "no-store"
        # A notification is answered with no body at all, and an event without data is no message.
        is_message = answer.mimetype == _JSON and bool(answer.get_data())
        if is_message and _wants_stream_only(request.headers.get("Accept", "")):
            return _as_event(answer)
        return answer

    return routes


def _inner_environ(environ: dict[str, Any], body: bytes) -> dict[str, Any]:
    """The request as the mounted application sees it: its root, the whole body, JSON wanted."""
    # SCRIPT_NAME empty and PATH_INFO "/": otherwise the mount redirects to a slash.
    inner = {**environ, "SCRIPT_NAME": "", "PATH_INFO": "/", "wsgi.input": BytesIO(body)}
    inner["CONTENT_LENGTH"] = str(len(body))
    inner["CONTENT_TYPE"] = _JSON
    inner["HTTP_ACCEPT"] = f"{_JSON}, {_STREAM}"
    # Stateless: an id of a session that an earlier process made means nothing and harms nothing.
    inner.pop("HTTP_TRANSFER_ENCODING", None)
    return inner


def _wants_stream_only(accept: str) -> bool:
    kinds = {part.split(";")[0].strip().lower() for part in accept.split(",")}
    return _STREAM in kinds and not kinds & {_JSON, "application/*", "*/*"}


def _as_event(answer: Response) -> Response:
    """The finished JSON answer as one server-sent event; JSON text of one line needs no splitting."""
    data = answer.get_data().replace(b"\r", b"").replace(b"\n", b"")
    event = Response(b"event: message\ndata: " + data + b"\n\n", answer.status_code, mimetype=_STREAM)
    event.headers["Cache-Control"] = "no-store"
    return event

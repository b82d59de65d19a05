"""`POST /mcp`: the official MCP server behind the gate's own checks, as plain JSON answers.

No stream is ever held open: a thread pool that serves long-lived streams is a server that stands still.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from flask import Blueprint, Request, Response, request
from werkzeug.exceptions import MethodNotAllowed

from memory_core import limits
from web.auth import current as current_caller
from web.auth import needs
from web.bodies import read_body, without_half_characters
from web.calls import CALLER
from web.flavors import input_shape
from web.mounted import ENVIRON, Mounted, WholeAnswer, WholeRequest
from web.query import takes

if TYPE_CHECKING:
    from mcp.server.lowlevel.server import Server

logger = logging.getLogger(__name__)

_JSON = "application/json"
_STREAM = "text/event-stream"
#: Headers that the mounted application gets from here.
_OURS = frozenset({"accept", "content-type", "content-length", "transfer-encoding"})


class Mount:
    """The MCP server with one event loop of its own, loaded and started at the first request.

    Not earlier: the process forks after the application is built, and a loop's thread does not survive that.
    """

    def __init__(self, make: Callable[[], Server[Any]]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._mounted: Mounted | None = None
        #: The loop holds its tasks only weakly.
        self._kept: set[asyncio.Task[None]] = set()

    def ask(self, request: WholeRequest) -> WholeAnswer:
        return self._started().ask(request)

    def _started(self) -> Mounted:
        with self._lock:
            if self._mounted is None:
                loop = asyncio.new_event_loop()
                threading.Thread(target=loop.run_forever, name="mcp", daemon=True).start()
                self._mounted = asyncio.run_coroutine_threadsafe(
                    _entered(self._make, self._kept), loop
                ).result()
            return self._mounted


async def _entered(make: Callable[[], Server[Any]], kept: set[asyncio.Task[None]]) -> Mounted:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    # Without the routes and the error pages around it, which this application has already; Host and Origin were checked too.
    manager = StreamableHTTPSessionManager(
        app=make(),
        json_response=True,
        stateless=True,
        max_request_body_size=limits.REQUEST_BODY_MAX_BYTES,
    )
    ready = asyncio.get_running_loop().create_future()

    async def live() -> None:
        # One task enters and holds the manager: its task group is bound to the task that opened it.
        async with manager.run():
            ready.set_result(None)
            await asyncio.Event().wait()

    kept.add(asyncio.create_task(live()))
    await ready
    return Mounted(cast("Any", manager.asgi_app), asyncio.get_running_loop())


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
        answer = _response(mount.ask(_whole(request)))
        answer.headers["Cache-Control"] = "no-store"
        # A notification is answered with no body at all, and an event without data is no message.
        is_message = answer.mimetype == _JSON and bool(answer.get_data())
        if is_message and _wants_stream_only(request.headers.get("Accept", "")):
            return _as_event(answer)
        return answer

    return routes


def _whole(request: Request) -> WholeRequest:
    """The request as the mounted application sees it: the whole body, JSON wanted."""
    body = without_half_characters(read_body(request))
    headers = [
        (name.lower().encode("latin-1"), value.encode("latin-1"))
        for name, value in request.headers
        if name.lower() not in _OURS
    ]
    headers += [
        (b"content-type", _JSON.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"accept", f"{_JSON}, {_STREAM}".encode()),
    ]
    return WholeRequest(
        method="POST",
        query_string=request.query_string,
        headers=headers,
        body=body,
        extra={ENVIRON: {**request.environ, CALLER: current_caller()}},
    )


def _response(answer: WholeAnswer) -> Response:
    return Response(answer.body, answer.status, answer.headers)


def _wants_stream_only(accept: str) -> bool:
    kinds = {part.split(";")[0].strip().lower() for part in accept.split(",")}
    return _STREAM in kinds and not kinds & {_JSON, "application/*", "*/*"}


def _as_event(answer: Response) -> Response:
    """The finished JSON answer as one server-sent event; JSON text of one line needs no splitting."""
    data = answer.get_data().replace(b"\r", b"").replace(b"\n", b"")
    event = Response(b"event: message\ndata: " + data + b"\n\n", answer.status_code, mimetype=_STREAM)
    event.headers["Cache-Control"] = "no-store"
    return event

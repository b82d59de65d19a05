"""An ASGI application that is asked as a function is: a whole request goes in, a whole answer comes out.

For answers that are no streams. The waiting thread is woken once, by the finished answer: a bridge that hands it each message,
and has it wait for what the application does afterwards, cost as much as the application itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TooLate
from dataclasses import dataclass, field
from typing import Any

from memory_core import limits
from memory_core.errors import Unavailable

logger = logging.getLogger(__name__)

#: Where the environ of the request rides in the scope.
ENVIRON = "memoryd.environ"

Message = MutableMapping[str, Any]
Application = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
]


@dataclass(frozen=True, kw_only=True)
class WholeRequest:
    """`headers` as ASGI wants them: lower-case names. `extra` is added to the scope."""

    method: str
    query_string: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes = field(repr=False)
    extra: dict[str, Any] = field(default_factory=dict[str, Any], repr=False)


@dataclass(frozen=True, kw_only=True)
class WholeAnswer:
    status: int
    headers: list[tuple[str, str]]
    body: bytes = field(repr=False)


class Mounted:
    """Lives on `loop`, which another thread runs; `ask` is for all other threads."""

    def __init__(self, app: Application, loop: asyncio.AbstractEventLoop) -> None:
        self._app = app
        self._loop = loop
        #: The loop itself holds its tasks only weakly.
        self._running: set[asyncio.Future[None]] = set()

    def ask(self, request: WholeRequest, seconds: float = limits.REQUEST_MAX_SECONDS) -> WholeAnswer:
        """Raises what the application raises, `Unavailable` where it gives no answer within `seconds`."""
        answer: Future[WholeAnswer] = Future()
        self._loop.call_soon_threadsafe(self._begin, request, answer, seconds)
        try:
            return answer.result(seconds)
        except TooLate:
            raise Unavailable("no answer came in time") from None

    def _begin(self, request: WholeRequest, answer: Future[WholeAnswer], seconds: float) -> None:
        exchange = _Exchange(request, answer)
        task = asyncio.ensure_future(self._app(_scope(request), exchange.receive, exchange.send))
        self._running.add(task)
        end = self._loop.call_later(seconds + limits.MCP_AFTERWORK_SECONDS, task.cancel)

        def ended(task: asyncio.Future[None]) -> None:
            end.cancel()
            self._running.discard(task)
            exchange.ended(None if task.cancelled() else task.exception())

        task.add_done_callback(ended)


class _Exchange:
    """One request and its answer while the application is at it; touched by the loop's thread alone."""

    def __init__(self, request: WholeRequest, answer: Future[WholeAnswer]) -> None:
        self._request: WholeRequest | None = request
        self._answer = answer
        self._is_over = asyncio.Event()
        self._status = 500
        self._headers: list[tuple[str, str]] = []
        self._body: list[bytes] = []

    async def receive(self) -> Message:
        if self._request is not None:
            body, self._request = self._request.body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._is_over.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            self._headers = [
                (name.decode("latin-1"), value.decode("latin-1")) for name, value in message["headers"]
            ]
        elif message["type"] == "http.response.body":
            self._body.append(message.get("body", b""))
            if not message.get("more_body", False):
                self._is_over.set()
                self._settle(
                    WholeAnswer(status=self._status, headers=self._headers, body=b"".join(self._body))
                )

    def ended(self, error: BaseException | None) -> None:
        self._is_over.set()
        if self._answer.done():
            if error is not None:
                logger.error(
                    "what followed an answer failed", exc_info=error, extra={"action": "mcp_afterwork"}
                )
        else:
            self._settle(error or Unavailable("the request ended without an answer"))

    def _settle(self, outcome: WholeAnswer | BaseException) -> None:
        if self._answer.done():
            return
        if isinstance(outcome, WholeAnswer):
            self._answer.set_result(outcome)
        else:
            self._answer.set_exception(outcome)


def _scope(request: WholeRequest) -> Message:
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.5"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": "/",
        "raw_path": b"/",
        "query_string": request.query_string,
        "root_path": "",
        "headers": request.headers,
        "extensions": {},
        **request.extra,
    }

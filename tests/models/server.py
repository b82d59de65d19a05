"""A provider's server on loopback: it answers what a test told it, records what it was asked, and is strict about it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from memory_core.clock import MICROSECONDS, SystemClock

#: Noon of a day in 2026, for dates in headers.
NOW_US = 1_780_000_000 * MICROSECONDS


class QuickClock:
    """Time passes as it does, and at once where somebody would sleep."""

    def __init__(self) -> None:
        self._real = SystemClock()
        self._skipped = 0.0
        self._stopped_at: float | None = None
        self.slept: list[float] = []

    def now_us(self) -> int:
        return NOW_US

    def stop(self) -> None:
        """From now on time passes only where somebody would sleep: then pauses are as long as they are meant to be."""
        self._stopped_at = self._real.monotonic()

    def monotonic(self) -> float:
        now = self._real.monotonic() if self._stopped_at is None else self._stopped_at
        return now + self._skipped

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self._skipped += seconds

    @property
    def paused(self) -> float:
        return round(sum(self.slept), 3)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One request as it came over the wire."""

    method: str
    path: str
    #: Names in lower case.
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Reply:
    """An answer in chunks. `ends`: as it should (`end`), in the middle (`cut`), or not before the test does (`stall`)."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    chunks: Iterable[bytes] = ()
    ends: str = "end"

    def broken(self, after: int, ends: str) -> Reply:
        return replace(self, chunks=list(self.chunks)[:after], ends=ends)


def json_reply(body: Any, *, status: int = 200, headers: dict[str, str] | None = None) -> Reply:
    given = {"content-type": "application/json", **(headers or {})}
    return Reply(status=status, headers=given, chunks=[json.dumps(body).encode()])


def events(*parts: tuple[str, Any]) -> list[bytes]:
    """Server-sent events; without a name only data, as some vendors have it."""
    return [
        (f"event: {name}\n" if name else "").encode() + f"data: {json.dumps(data)}\n\n".encode()
        for name, data in parts
    ]


class Server:
    """Answers from `replies`, in order; one too many is a fault."""

    def __init__(self, check: Callable[[Asked], Any]) -> None:
        self.asked: list[Asked] = []
        self.replies: list[Reply] = []
        self.faults: list[str] = []
        #: Set when a reply that stalls has sent all its chunks.
        self.stalling = threading.Event()
        self.over = threading.Event()
        self.check = check
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                outer.answer(self)

            do_GET = do_POST

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        # A client that hangs up, or refuses the certificate, is what some tests want.
        self.http.handle_error = lambda *_: None  # type: ignore[method-assign]

    @property
    def port(self) -> int:
        return self.http.server_address[1]

    def will(self, *replies: Reply) -> None:
        self.replies.extend(replies)

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        asked = _read(handler)
        self.asked.append(asked)
        try:
            self.check(asked)
        except Exception as fault:
            self.faults.append(f"{type(fault).__name__}: {fault}")
        if not self.replies:
            self.faults.append("asked more often than expected")
            self.replies.append(Reply(status=418))
        try:
            self._send(handler, self.replies.pop(0))
        except OSError:
            pass  # the client hung up, as some tests want

    def _send(self, handler: BaseHTTPRequestHandler, reply: Reply) -> None:
        handler.close_connection = True
        handler.send_response(reply.status)
        for name, value in reply.headers.items():
            handler.send_header(name, value)
        handler.send_header("transfer-encoding", "chunked")
        handler.end_headers()
        for chunk in reply.chunks:
            handler.wfile.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
            handler.wfile.flush()
        if reply.ends == "stall":
            self.stalling.set()
            self.over.wait(60)
        elif reply.ends == "end":
            handler.wfile.write(b"0\r\n\r\n")


def _read(handler: BaseHTTPRequestHandler) -> Asked:
    size = int(handler.headers.get("content-length") or 0)
    raw = handler.rfile.read(size)
    return Asked(
        method=handler.command,
        path=handler.path,
        headers={name.lower(): value for name, value in handler.headers.items()},
        body=json.loads(raw) if raw else {},
    )


@contextmanager
def serving(check: Callable[[Asked], Any]) -> Generator[Server]:
    server = Server(check)
    thread = threading.Thread(target=server.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.over.set()
        server.http.shutdown()
        server.http.server_close()
        thread.join(60)
    assert server.faults == []

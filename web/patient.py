"""A threaded gunicorn worker whose threads never wait for a slow client.

gunicorn hands a new connection to a thread at once, which then waits for bytes: a few dozen connections that
send a byte now and then occupy the whole pool. Here the main loop keeps a connection until its request
head, and a body that fits beside it, have arrived whole. Longer bodies, which a thread has to read, may never
occupy all threads; and the end of a connection is waited for by the loop, without a thread and without a pause.
"""

from __future__ import annotations

import contextlib
import re
import socket
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from selectors import EVENT_READ
from typing import Any

from gunicorn.workers.gthread import TConn, ThreadWorker

from memory_core import limits

_PEEK_BYTES = limits.PATIENT_PEEK_BYTES
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,40})[ \t]*\r\n", re.IGNORECASE)
_OPEN_ENDED = re.compile(rb"\r\n(?:expect|transfer-encoding):", re.IGNORECASE)
_TIMED_OUT = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
_TOO_LONG = b"HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
_BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
)


@dataclass(frozen=True, kw_only=True)
class _Arrived:
    """What there is of a request, without having taken it."""

    #: Further bytes that must lie in the socket before it is worth looking again; 0 when a thread can start.
    missing: int = 0
    #: A thread will have to wait for the rest of its body.
    is_long: bool = False
    #: The head is longer than any that is answered.
    is_endless: bool = False


class PatientWorker(ThreadWorker):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        #: Connections whose request is not whole yet, and until when they may take; the oldest first.
        self._parked: dict[TConn, float] = {}
        #: Requests that threads work on, and until when.
        self._at_work: dict[TConn, float] = {}
        #: Those of them that wait for a long body, and those that would.
        self._long: set[TConn] = set()
        self._long_waiting: deque[tuple[TConn, float]] = deque()
        #: Answered connections that shall close: until when, and how many bytes may still come.
        self._closing: dict[TConn, tuple[float, int]] = {}

    # --- a request arrives ---

    def enqueue_req(self, conn: TConn) -> None:
        """Give a connection to a thread, or keep it in the loop until there is work on it."""
        arrived = _arrived(conn)
        if arrived.is_endless:
            self._refuse(conn, _TOO_LONG)
        elif arrived.missing:
            self._park(conn, arrived.missing)
        elif not arrived.is_long:
            self._work(conn)
        elif len(self._long) < limits.LONG_BODY_THREADS:
            self._long.add(conn)
            self._work(conn)
        else:
            self._long_waiting.append((conn, time.monotonic() + limits.REQUEST_ARRIVAL_SECONDS))

    def _work(self, conn: TConn) -> None:
        _wake_at(conn, 1)
        conn.data_ready = True
        self._at_work[conn] = time.monotonic() + limits.REQUEST_MAX_SECONDS
        super().enqueue_req(conn)

    def _park(self, conn: TConn, wanted_bytes: int) -> None:
        conn.sock.setblocking(False)
        _wake_at(conn, wanted_bytes)
        until = getattr(conn, "patience_until", None)
        if until is None:
            until = time.monotonic() + limits.REQUEST_ARRIVAL_SECONDS
            conn.patience_until = until  # pyright: ignore[reportAttributeAccessIssue]
        self._parked[conn] = until
        self._watch(conn, partial(self._on_parked_readable, conn))

    def _on_parked_readable(self, conn: TConn, _: Any) -> None:
        self._unwatch(conn)
        del self._parked[conn]
        self.enqueue_req(conn)

    def on_client_socket_readable(self, conn: TConn, client: Any) -> None:
        conn.patience_until = None  # pyright: ignore[reportAttributeAccessIssue]
        super().on_client_socket_readable(conn, client)

    # --- a request is done ---

    def finish_request(self, conn: TConn, fs: Any) -> None:
        self._at_work.pop(conn, None)
        if conn in self._long:
            self._long.discard(conn)
            if self._long_waiting:
                self.enqueue_req(self._long_waiting.popleft()[0])
        if fs.cancelled() or fs.exception() is not None or fs.result():
            conn.patience_until = None  # pyright: ignore[reportAttributeAccessIssue]
            super().finish_request(conn, fs)
        else:
            self._close_slowly(conn)

    def _keepalive_after(self, conn: TConn, keepalive: bool) -> bool:
        """Of a body that nobody read only what lies there is drained: a thread waits for no more of it."""
        deadline = time.monotonic() + limits.UNREAD_BODY_SECONDS
        parser: Any = conn.parser
        return bool(keepalive and parser.finish_body(deadline=deadline))

    def _close_slowly(self, conn: TConn) -> None:
        """Say that nothing more comes, then wait in the loop until the other side has read that and closes.

        Closing with bytes unread would reset the connection, and the answer might be lost with it.
        """
        try:
            conn.sock.setblocking(False)
            conn.sock.shutdown(socket.SHUT_WR)
        except OSError:
            self._end(conn)
            return
        _wake_at(conn, 1)
        until = time.monotonic() + limits.CLOSING_SECONDS
        self._closing[conn] = (until, limits.CLOSING_DRAIN_MAX_BYTES)
        self._watch(conn, partial(self._on_closing_readable, conn))

    def _on_closing_readable(self, conn: TConn, _: Any) -> None:
        until, room = self._closing[conn]
        try:
            data = conn.sock.recv(limits.MIB, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data and len(data) < room:
            self._closing[conn] = (until, room - len(data))
        else:
            self._drop(conn)

    # --- time and room ---

    def murder_pending(self) -> None:
        """Each second or so: end what takes too long."""
        super().murder_pending()
        now = time.monotonic()
        for conn in [conn for conn, until in self._parked.items() if until <= now]:
            self._refuse(conn, _TIMED_OUT)
        for conn in [conn for conn, (until, _) in self._closing.items() if until <= now]:
            self._drop(conn)
        while self._long_waiting and self._long_waiting[0][1] <= now:
            self._refuse(self._long_waiting.popleft()[0], _BUSY)
        for conn in [conn for conn, until in self._at_work.items() if until <= now]:
            # Its thread is blocked in reading or writing and finds the connection broken.
            del self._at_work[conn]
            with contextlib.suppress(OSError):
                conn.sock.shutdown(socket.SHUT_RDWR)

    def wait_for_and_dispatch_events(self, timeout: float | None) -> None:
        # Whoever waits longest without a whole request, or for its end, makes room for newcomers.
        while self.nr_conns >= self.worker_connections - self.cfg.threads:
            oldest = next(iter(self._closing), None) or next(iter(self._parked), None)
            if oldest is None:
                break
            self._drop(oldest)
        super().wait_for_and_dispatch_events(timeout)

    def set_accept_enabled(self, enabled: bool | None) -> None:
        super().set_accept_enabled(enabled)
        if not self.alive:
            for conn in [*self._parked, *self._closing]:
                self._drop(conn)
            while self._long_waiting:
                self._refuse(self._long_waiting.popleft()[0], _BUSY)

    def _watch(self, conn: TConn, on_readable: Callable[[Any], None]) -> None:
        self.poller.register(conn.sock, EVENT_READ, on_readable)  # pyright: ignore[reportOptionalMemberAccess]

    def _unwatch(self, conn: TConn) -> None:
        with contextlib.suppress(OSError, KeyError, ValueError):
            self.poller.unregister(conn.sock)  # pyright: ignore[reportOptionalMemberAccess]

    def _refuse(self, conn: TConn, answer: bytes) -> None:
        """Say why in one packet, as far as it goes out without waiting."""
        self._forget(conn)
        with contextlib.suppress(OSError):
            conn.sock.send(answer, socket.MSG_DONTWAIT)
        self._close_slowly(conn)

    def _drop(self, conn: TConn) -> None:
        self._forget(conn)
        self._end(conn)

    def _forget(self, conn: TConn) -> None:
        if conn in self._parked or conn in self._closing:
            self._unwatch(conn)
        self._parked.pop(conn, None)
        self._closing.pop(conn, None)

    def _end(self, conn: TConn) -> None:
        self.nr_conns -= 1
        conn.close()


def _arrived(conn: TConn) -> _Arrived:
    parser: Any = conn.parser
    # What came in one packet with the request before lies in the parser, not in the socket.
    taken: bytes = parser.unreader.buf.getvalue() if parser is not None else b""
    try:
        peeked = conn.sock.recv(_PEEK_BYTES, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        if not taken:
            return _Arrived(missing=1)
        peeked = None
    except OSError:
        return _Arrived()
    if peeked == b"":
        return _Arrived()
    data = taken + (peeked or b"")
    in_socket = len(peeked or b"")
    end = data.find(b"\r\n\r\n")
    if end < 0:
        return _Arrived(missing=in_socket + 1, is_endless=len(data) >= _PEEK_BYTES)
    head = data[: end + 2]
    length = _LENGTH.search(head)
    whole = end + 4 + (int(length.group(1)) if length else 0)
    # What is too long to lie in the socket's buffer is read by a thread, after it knows who asks.
    if whole > _PEEK_BYTES or _OPEN_ENDED.search(head):
        return _Arrived(is_long=True)
    return _Arrived(missing=0 if whole <= len(data) else whole - len(taken))


def _wake_at(conn: TConn, wanted_bytes: int) -> None:
    """Let the poller wake only when that many bytes lie there: unread ones would wake it for ever."""
    if getattr(conn, "wakes_at", 1) != wanted_bytes:
        with contextlib.suppress(OSError):
            conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, wanted_bytes)
        conn.wakes_at = wanted_bytes  # pyright: ignore[reportAttributeAccessIssue]

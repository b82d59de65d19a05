"""A threaded gunicorn worker whose threads never wait for a slow client.

gunicorn hands a new connection to a thread at once, which then waits for bytes: a few dozen connections that
send a byte now and then occupy the whole pool. Here the main loop keeps a connection until its request
head, and a body that fits beside it, have arrived whole; a thread only ever works.
"""

from __future__ import annotations

import contextlib
import re
import socket
import time
from functools import partial
from selectors import EVENT_READ
from typing import Any

from gunicorn.workers.gthread import TConn, ThreadWorker

from memory_core import limits

_PEEK_BYTES = limits.PATIENT_PEEK_BYTES
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,7})[ \t]*\r\n", re.IGNORECASE)
_EXPECTS = re.compile(rb"\r\nexpect:", re.IGNORECASE)
_TIMED_OUT = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class PatientWorker(ThreadWorker):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        #: Connections whose request is not whole yet, and until when they may take; the oldest first.
        self._parked: dict[TConn, float] = {}
        #: Requests that threads work on, and until when.
        self._at_work: dict[TConn, float] = {}

    def enqueue_req(self, conn: TConn) -> None:
        """Give a connection to a thread, or keep it in the loop until there is work on it."""
        missing = _missing(conn)
        if missing:
            self._park(conn, missing)
            return
        _wake_at(conn, 1)
        conn.data_ready = True
        self._at_work[conn] = time.monotonic() + limits.REQUEST_MAX_SECONDS
        super().enqueue_req(conn)

    def finish_request(self, conn: TConn, fs: Any) -> None:
        self._at_work.pop(conn, None)
        super().finish_request(conn, fs)

    def murder_pending(self) -> None:
        """Each second or so: end what takes too long."""
        super().murder_pending()
        now = time.monotonic()
        for conn in [conn for conn, until in self._parked.items() if until <= now]:
            with contextlib.suppress(OSError):
                conn.sock.send(_TIMED_OUT, socket.MSG_DONTWAIT)
            self._drop(conn)
        for conn in [conn for conn, until in self._at_work.items() if until <= now]:
            # Its thread is blocked in reading or writing and finds the connection broken.
            del self._at_work[conn]
            with contextlib.suppress(OSError):
                conn.sock.shutdown(socket.SHUT_RDWR)

    def wait_for_and_dispatch_events(self, timeout: float | None) -> None:
        # Whoever waits longest without a whole request makes room for newcomers.
        while self._parked and self.nr_conns >= self.worker_connections - self.cfg.threads:
            self._drop(next(iter(self._parked)))
        super().wait_for_and_dispatch_events(timeout)

    def set_accept_enabled(self, enabled: bool | None) -> None:
        super().set_accept_enabled(enabled)
        if not self.alive:
            for conn in list(self._parked):
                self._drop(conn)

    def _park(self, conn: TConn, wanted_bytes: int) -> None:
        conn.sock.setblocking(False)
        _wake_at(conn, wanted_bytes)
        until = getattr(conn, "patience_until", None)
        if until is None:
            until = time.monotonic() + limits.REQUEST_ARRIVAL_SECONDS
            conn.patience_until = until  # pyright: ignore[reportAttributeAccessIssue]
        self._parked[conn] = until
        self.poller.register(conn.sock, EVENT_READ, partial(self._on_parked_readable, conn))  # pyright: ignore[reportOptionalMemberAccess]

    def _on_parked_readable(self, conn: TConn, _: Any) -> None:
        self._unpark(conn)
        self.enqueue_req(conn)

    def on_client_socket_readable(self, conn: TConn, client: Any) -> None:
        conn.patience_until = None  # pyright: ignore[reportAttributeAccessIssue]
        super().on_client_socket_readable(conn, client)

    def _unpark(self, conn: TConn) -> None:
        del self._parked[conn]
        with contextlib.suppress(OSError, KeyError, ValueError):
            self.poller.unregister(conn.sock)  # pyright: ignore[reportOptionalMemberAccess]

    def _drop(self, conn: TConn) -> None:
        self._unpark(conn)
        self.nr_conns -= 1
        conn.close()


def _missing(conn: TConn) -> int:
    """0 when a thread can work on what has arrived; else how many bytes there must be before it is worth looking again."""
    parser: Any = conn.parser
    if parser is not None and parser.unreader.buf.getvalue():
        return 0
    try:
        data = conn.sock.recv(_PEEK_BYTES, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return 1
    except OSError:
        return 0
    end = data.find(b"\r\n\r\n")
    if end < 0:
        return len(data) + 1 if data and len(data) < _PEEK_BYTES else 0
    head = data[: end + 2]
    length = _LENGTH.search(head)
    whole = end + 4 + (int(length.group(1)) if length else 0)
    # What is too long to lie in the socket's buffer is read by the thread, after it knows who asks.
    if whole > _PEEK_BYTES or whole <= len(data) or _EXPECTS.search(head):
        return 0
    return whole


def _wake_at(conn: TConn, wanted_bytes: int) -> None:
    """Let the poller wake only when that many bytes lie there: unread ones would wake it for ever."""
    if getattr(conn, "wakes_at", 1) != wanted_bytes:
        with contextlib.suppress(OSError):
            conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, wanted_bytes)
        conn.wakes_at = wanted_bytes  # pyright: ignore[reportAttributeAccessIssue]

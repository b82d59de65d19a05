"""The client's HTTP side: posting a batch, asking for context. Bounded in time and in bytes, no redirects, no proxies."""

from __future__ import annotations

import http.client
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from urllib.parse import urlsplit

from memory_core import limits

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` itself takes milliseconds to load
    from typing import BinaryIO


class NoAnswer(Exception):
    """The server could not be reached, or its answer was cut. `was_sent`: it may or may not have been kept."""

    def __init__(self, message: str, *, was_sent: bool = True) -> None:
        super().__init__(message)
        self.was_sent = was_sent


class Unusable(NoAnswer):
    """What the client was told cannot be used, so nothing was sent; trying again changes nothing."""

    #: The HTTP status that says the same.
    status = 400

    def __init__(self, message: str) -> None:
        super().__init__(message, was_sent=False)


class BadAddress(Unusable):
    """The server's URL is none."""


class BadToken(Unusable):
    """The token is no token."""

    status = 401


class Answer:
    __slots__ = ("body", "link", "retry_after", "status")

    def __init__(self, status: int, body: bytes, retry_after: float | None, link: str = "") -> None:
        self.status = status
        self.body = body
        #: The `Link` header of a list that goes on.
        self.link = link
        #: Seconds, as the server asks.
        self.retry_after = retry_after


def knock(url: str, *, timeout_seconds: float) -> None:
    """Ask the server for any answer at all, whatever it is; `NoAnswer` where none begins within the time. Nothing is sent that counts."""
    asked = exchange("OPTIONS", url, "/hook/batch", token="", timeout_seconds=timeout_seconds)
    try:
        with _alarm(timeout_seconds), asked:
            pass
    except TimeoutError as error:  # the alarm rang between two steps
        raise NoAnswer(f"{type(error).__name__}", was_sent=False) from error


def request(
    method: str,
    url: str,
    path: str,
    *,
    token: str,
    timeout_seconds: float,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    answer_max_bytes: int = limits.CLIENT_ANSWER_MAX_BYTES,
    has_alarm: bool = True,
) -> Answer:
    """One request on its own connection; `NoAnswer` when no whole answer came within the time.

    `has_alarm`: in the main thread a timer signal bounds name resolution too. Not for a library, whose caller may use
    that signal.
    """
    deadline = time.monotonic() + timeout_seconds
    asked = exchange(
        method, url, path, token=token, timeout_seconds=timeout_seconds, body=body, headers=headers
    )
    try:
        with _alarm(timeout_seconds) if has_alarm else nullcontext(), asked as response:
            data = _read(response, deadline, answer_max_bytes)
            retry_after = _seconds(response.getheader("Retry-After"))
            return Answer(response.status, data, retry_after, response.getheader("Link") or "")
    except TimeoutError as error:  # the alarm rang when the answer was there already
        raise NoAnswer(f"{type(error).__name__}") from error


@contextmanager
def exchange(
    method: str,
    url: str,
    path: str,
    *,
    token: str,
    timeout_seconds: float,
    body: bytes | BinaryIO | None = None,
    headers: Mapping[str, str] | None = None,
) -> Iterator[http.client.HTTPResponse]:
    """One request and the answer to read; `NoAnswer` where connection or answer break, also while it is read.

    `timeout_seconds` bounds each step, not the whole. A body is JSON unless `headers` say otherwise; that of a file is
    sent as it is read, and needs its `Content-Length` among them.
    """
    scheme, host, port, prefix = _address(url)
    if not (token.isascii() and token.isprintable() and len(token.split()) < 2):
        raise BadToken("a token is one word of ASCII characters on one line")
    sent = {**(headers or {}), **({"Authorization": f"Bearer {token}"} if token else {})}
    if body is not None:
        sent.setdefault("Content-Type", "application/json")
    was_sent = False
    try:
        connection = _connection(scheme, host, port, timeout_seconds)
        try:
            connection.connect()
            was_sent = True
            connection.request(method, prefix + path, body=body, headers=sent)
            yield connection.getresponse()
        finally:
            connection.close()
    except (UnicodeError, http.client.InvalidURL) as error:
        raise BadAddress(f"the server's URL cannot be used: {url[:200]!r}") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise NoAnswer(f"{type(error).__name__}", was_sent=was_sent) from error


def _address(url: str) -> tuple[str, str, int | None, str]:
    """Scheme, host, port and path of the server's URL. Raises `BadAddress`."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise BadAddress(f"the server's URL cannot be used: {url[:200]!r}: {error}") from error
    if parts.scheme not in ("http", "https") or not host:
        raise BadAddress(
            f"the server's URL begins with http:// or https:// and names a host, not {url[:200]!r}"
        )
    return parts.scheme, host, port, parts.path.rstrip("/")


def _connection(scheme: str, host: str, port: int | None, timeout: float) -> http.client.HTTPConnection:
    if scheme == "https":
        import ssl  # only where it is needed: it is slow to load

        return http.client.HTTPSConnection(host, port, timeout=timeout, context=ssl.create_default_context())
    return http.client.HTTPConnection(host, port, timeout=timeout)


def _read(response: http.client.HTTPResponse, deadline: float, max_bytes: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while piece := response.read1(65_536):
        size += len(piece)
        if size > max_bytes:
            raise ValueError("answer too long")
        if time.monotonic() > deadline:
            raise TimeoutError
        pieces.append(piece)
    if response.length:
        raise http.client.IncompleteRead(b"", response.length)
    return b"".join(pieces)


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """Socket timeouts do not bound name resolution; where signals work, a timer does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, max(0.001, seconds))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _seconds(text: str | None) -> float | None:
    """`Retry-After` in seconds; a date, which no memoryd sends, counts as none."""
    try:
        return max(0.0, float(text)) if text is not None else None
    except ValueError:
        return None

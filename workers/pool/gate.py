"""The pool's end of `/pool/*`: bounded JSON over kept connections, from any thread.

Every request carries an `Idempotency-Key`, so that one whose answer was lost is simply sent again with the same key:
the gate answers it as it did the first time. What became of the first sending makes no difference here.
"""

from __future__ import annotations

import http.client
import secrets
import threading
import zlib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from memory_core import limits
from memory_core.clock import Clock
from memory_core.errors import Conflict, Forbidden, Invalid, StaleLease, Unavailable

Json = dict[str, Any]
A = TypeVar("A")
#: Waits so many seconds; False when the worker is about to end and nobody should wait any more.
Pause = Callable[[float], bool]


class PoolGate:
    """One gate, reached with a pool token that is read anew when the gate does not accept it."""

    def __init__(self, url: str, token: Callable[[], str], clock: Clock) -> None:
        """Connects to nothing yet. Raises `Invalid` for what is no http(s) URL."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise Invalid(f"the gate's URL begins with http:// or https://, not {url[:200]!r}")
        self._scheme, self._host, self._port = parts.scheme, parts.hostname, parts.port
        self._base = parts.path.rstrip("/")
        self._token = token
        self._clock = clock
        self._lock = threading.Lock()
        #: Idle connections and when they were put back, the newest last.
        self._idle: list[tuple[float, http.client.HTTPConnection]] = []

    def ask(self, path: str, body: Mapping[str, Any], *, key: str, type: type[A] = Json) -> A:
        """Post once: the answer, read as `type`.

        Raises `StaleLease`; `Unavailable` when there is no usable answer now, whether or not it took
        effect; `Forbidden`, `Conflict` and `Invalid` when sending it again would not help.
        """
        return _answer(path, *self._exchange("POST", path, msgspec.json.encode(body), key), type)

    def insist(
        self,
        path: str,
        body: Mapping[str, Any],
        *,
        seconds: float,
        pause: Pause,
        key: str = "",
        type: type[A] = Json,
    ) -> A:
        """Post until there is an answer, for at most about `seconds`; then raises the last `Unavailable`."""
        key = key or new_key()
        end = self._clock.monotonic() + seconds
        tries = 0
        while True:
            try:
                return self.ask(path, body, key=key, type=type)
            except Unavailable as error:
                pauses = limits.POOL_RESEND_PAUSES_SECONDS
                wait = max(pauses[min(tries, len(pauses) - 1)], error.retry_after_seconds)
                if self._clock.monotonic() + wait > end or not pause(wait):
                    raise
                tries += 1

    def get(self, path: str, type: type[A] = Json) -> A:
        """Ask for something that changes nothing. Raises as `ask`."""
        return _answer(path, *self._exchange("GET", path, None, ""), type)

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for _, connection in idle:
            connection.close()

    def _exchange(
        self, method: str, path: str, data: bytes | None, key: str
    ) -> tuple[int, bytes, float | None]:
        headers = {"Authorization": f"Bearer {self._token()}", "Accept-Encoding": "gzip"}
        if data is not None:
            headers["Content-Type"] = "application/json"
        if key:
            headers["Idempotency-Key"] = key
        deadline = self._clock.monotonic() + limits.POOL_ANSWER_SECONDS
        while True:
            connection, was_kept = self._take()
            try:
                connection.request(method, self._base + path, body=data, headers=headers)
                response = connection.getresponse()
                body = _read(response, lambda: self._clock.monotonic() > deadline)
                # `read1` does not notice that it read all; without this the connection takes no further request.
                response.close()
                is_kept = not response.will_close
                retry_after = _seconds(response.getheader("Retry-After"))
            except (OSError, http.client.HTTPException, zlib.error, ValueError) as error:
                connection.close()
                # The gate may have closed a connection while it lay idle: that says nothing about the gate.
                if was_kept and isinstance(error, ConnectionError):
                    continue
                raise Unavailable(f"no answer from the gate ({type(error).__name__})") from error
            if is_kept:
                self._put_back(connection)
            else:
                connection.close()
            return response.status, body, retry_after

    def _take(self) -> tuple[http.client.HTTPConnection, bool]:
        """A connection, and whether it was used before. The ones that lay too long are closed."""
        oldest = self._clock.monotonic() - limits.POOL_CONNECTION_IDLE_SECONDS
        with self._lock:
            stale = [connection for at, connection in self._idle if at < oldest]
            self._idle = [(at, connection) for at, connection in self._idle if at >= oldest]
            taken = self._idle.pop()[1] if self._idle else None
        for connection in stale:
            connection.close()
        return (taken, True) if taken is not None else (self._connection(), False)

    def _put_back(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            self._idle.append((self._clock.monotonic(), connection))

    def _connection(self) -> http.client.HTTPConnection:
        if self._scheme == "https":
            import ssl  # only where it is needed: it takes memory

            return http.client.HTTPSConnection(
                self._host,
                self._port,
                timeout=limits.POOL_ANSWER_SECONDS,
                context=ssl.create_default_context(),
            )
        return http.client.HTTPConnection(self._host, self._port, timeout=limits.POOL_ANSWER_SECONDS)


def new_key() -> str:
    """An `Idempotency-Key` for one request and its re-sends."""
    return secrets.token_hex(16)


def _read(response: http.client.HTTPResponse, is_late: Callable[[], bool]) -> bytes:
    """The body, unpacked. Bounded in time and in bytes, so that neither a slow nor a swelling answer holds a slot."""
    is_packed = response.getheader("Content-Encoding", "").lower() == "gzip"
    unpacker = zlib.decompressobj(wbits=31) if is_packed else None
    pieces: list[bytes] = []
    size = 0
    while piece := response.read1(65_536):
        if is_late():
            raise TimeoutError
        if unpacker is not None:
            piece = unpacker.decompress(piece, limits.POOL_ANSWER_MAX_BYTES - size + 1)
        size += len(piece)
        if size > limits.POOL_ANSWER_MAX_BYTES:
            raise ValueError("answer too long")
        pieces.append(piece)
    if response.length or (unpacker is not None and not unpacker.eof):
        raise http.client.IncompleteRead(b"".join(pieces))
    return b"".join(pieces)


def _answer(path: str, status: int, data: bytes, retry_after: float | None, wanted: type[A]) -> A:
    # 202: taken and not yet applied; the same key asks for the answer.
    if status in (202, 408, 429) or status >= 500:
        raise Unavailable(f"{path}: {_said(status, data)}", retry_after_seconds=retry_after or 0.0)
    if status == 409 and _code(data) == StaleLease.code:
        raise StaleLease
    if status in (401, 403):
        raise Forbidden(f"{path}: {_said(status, data)}")
    if status == 409:
        raise Conflict(f"{path}: {_said(status, data)}")
    if status >= 300:
        raise Invalid(f"{path}: {_said(status, data)}")
    try:
        return msgspec.json.decode(data, type=wanted)
    except msgspec.MsgspecError as error:
        raise Unavailable(f"{path}: what answers is not the gate of this version of memoryd") from error


def _code(data: bytes) -> str:
    try:
        found = msgspec.json.decode(data)
    except msgspec.MsgspecError:
        found = None
    return str(found.get("code", "")) if isinstance(found, dict) else ""


def _said(status: int, data: bytes) -> str:
    """The sentence in an answer that is an error."""
    try:
        found = msgspec.json.decode(data)
    except msgspec.MsgspecError:
        found = None
    return str(found["error"])[:500] if isinstance(found, dict) and "error" in found else f"HTTP {status}"


def _seconds(text: str | None) -> float | None:
    try:
        return max(0.0, float(text)) if text is not None else None
    except ValueError:
        return None

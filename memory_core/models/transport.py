"""HTTP to a provider, within the bounds of one call. Heavy: import it inside functions.

Every vendor's client is given this transport, so that time-outs, the cap on an answer, cancelling and the
translation of network errors are one thing. The environment (proxies, certificates, .netrc) has no say.
"""

from __future__ import annotations

import ssl
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import httpcore2
import httpx2

from memory_core import limits
from memory_core.models.bounds import Bounds
from memory_core.models.errors import AnswerTooLong, Malformed, TimedOut, Unreachable

#: Headers that any request may carry; a vendor adds those of its own interface.
_HEADERS = frozenset(("host", "accept", "content-type", "content-length", "transfer-encoding", "connection"))


def client(bounds: Bounds, headers: frozenset[str], copy: bytearray | None = None) -> httpx2.Client:
    """A client for one call: one connection, no redirect followed (a key would travel with it).

    Of the headers that a vendor's client makes up, from the environment too, only `headers` (lower case) go out.
    `copy` is given what arrives, for a vendor whose client hides part of it.
    """
    transport = BoundedTransport(bounds, headers, copy)
    return httpx2.Client(transport=transport, follow_redirects=False, trust_env=False)


class BoundedTransport(httpx2.BaseTransport):
    """Raises errors of `memory_core.models.errors`; a vendor's client carries them as the cause of its own."""

    def __init__(self, bounds: Bounds, headers: frozenset[str], copy: bytearray | None = None) -> None:
        self._bounds = bounds
        self._copy = copy
        self._headers = _HEADERS | headers
        self._pool = httpcore2.ConnectionPool(
            ssl_context=_certificates(),
            network_backend=_Backend(bounds),
            max_connections=1,
            max_keepalive_connections=0,
        )

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        self._bounds.check()
        # The vendor's client also sets time-outs for each read; ours hold for the whole.
        sent = httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(
                scheme=request.url.raw_scheme,
                host=request.url.raw_host,
                port=request.url.port,
                target=request.url.raw_path,
            ),
            headers=self._allowed(request.headers.raw),
            content=request.stream,
        )
        with _translated():
            answer = self._pool.handle_request(sent)
        if any(name.lower() == b"content-encoding" for name, _ in answer.headers):
            answer.close()
            raise Malformed
        return httpx2.Response(
            status_code=answer.status,
            headers=answer.headers,
            stream=_Capped(answer, self._bounds, self._copy),
        )

    def close(self) -> None:
        self._pool.close()

    def _allowed(self, headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        """An answer is asked for unpacked: unpacked here it could be far larger than what was counted."""
        allowed = [pair for pair in headers if pair[0].decode("latin-1").lower() in self._headers]
        return [*allowed, (b"User-Agent", b"memoryd"), (b"Accept-Encoding", b"identity")]


class _Capped(httpx2.SyncByteStream):
    def __init__(self, answer: httpcore2.Response, bounds: Bounds, copy: bytearray | None) -> None:
        self._answer = answer
        self._copy = copy
        self._bounds = bounds

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        with _translated():
            for part in self._answer.iter_stream():
                self._bounds.check()
                size += len(part)
                if size > self._bounds.answer_max_bytes:
                    raise AnswerTooLong
                if self._copy is not None:
                    self._copy += part
                yield part

    def close(self) -> None:
        with _translated():
            self._answer.close()


class _Backend(httpcore2.NetworkBackend):
    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._inner = httpcore2.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        seconds = min(limits.MODEL_CONNECT_SECONDS, max(self._bounds.remaining_seconds(), 0.001))
        stream = self._inner.connect_tcp(host, port, seconds, local_address, socket_options or [])
        return _Watched(stream, self._bounds)


class _Watched(httpcore2.NetworkStream):
    """A connection whose waits end at the deadline, or soon after the call is cancelled."""

    def __init__(self, inner: httpcore2.NetworkStream, bounds: Bounds) -> None:
        self._inner = inner
        self._bounds = bounds

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002
        while True:
            self._bounds.check()
            try:
                return self._inner.read(max_bytes, self._slice())
            except httpcore2.ReadTimeout:
                # Nothing was read: what is on its way is still there for the next look.
                continue

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002
        self._bounds.check()
        self._inner.write(buffer, max(self._bounds.remaining_seconds(), 0.001))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002
    ) -> httpcore2.NetworkStream:
        seconds = min(limits.MODEL_CONNECT_SECONDS, max(self._bounds.remaining_seconds(), 0.001))
        return _Watched(self._inner.start_tls(ssl_context, server_hostname, seconds), self._bounds)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)

    def _slice(self) -> float:
        return max(min(limits.MODEL_POLL_SECONDS, self._bounds.remaining_seconds()), 0.001)


@contextmanager
def _translated() -> Generator[None]:
    try:
        yield
    except httpcore2.ConnectTimeout:
        raise Unreachable from None
    except httpcore2.TimeoutException:
        raise TimedOut from None
    except httpcore2.NetworkError:
        raise Unreachable from None
    except httpcore2.RemoteProtocolError:
        # A connection that was cut in the middle of an answer, or something that speaks no HTTP.
        raise Unreachable from None
    except (httpcore2.ProtocolError, httpcore2.UnsupportedProtocol):
        raise Malformed from None


@cache
def _certificates() -> ssl.SSLContext:
    """The certificates of this machine. Reading them takes a while."""
    return httpx2.create_ssl_context(trust_env=False)

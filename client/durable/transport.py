"""Requests of a durable session: each write with a key of its own, sent again with the same key until there is an answer."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from http.client import HTTPResponse
from typing import Any, BinaryIO
from urllib.parse import urlencode

from client import gate
from client.durable.errors import BY_CODE
from client.settings import ClientSettings
from memory_core import errors, limits
from memory_core.clock import Clock, SystemClock
from memory_core.domain import capped_json

LEASE_HEADER = "Memoryd-Lease"
_API = "/api/v1"


class Transport:
    """One server, reached with one token. Safe for several threads: each request has a connection of its own."""

    def __init__(
        self,
        settings: ClientSettings,
        *,
        clock: Clock | None = None,
        patience_seconds: float = limits.DURABLE_PATIENCE_SECONDS,
    ) -> None:
        """`patience_seconds`: for how long a request is sent again while the server cannot take it or does not answer."""
        if not settings.url.startswith(("http://", "https://")):
            raise errors.Invalid(f"the server's URL begins with http:// or https://, not {settings.url!r}")
        self._settings = settings
        self._clock = clock or SystemClock()
        self._patience_seconds = patience_seconds

    def write(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        lease: str = "",
        within_seconds: float | None = None,
    ) -> Any:
        """The answer to a write, which takes effect once. `within_seconds`: one try of so long, instead of patience.

        Raises what the server refuses by class; `Unavailable` where nothing was kept; `OutcomeUnknown` where
        nobody knows.
        """
        data = capped_json.encode(
            dict(body or {}), max_bytes=limits.REQUEST_BODY_MAX_BYTES, what="the request"
        )
        return self.write_text(method, path, data, lease=lease, within_seconds=within_seconds)

    def write_text(
        self, method: str, path: str, data: bytes, *, lease: str = "", within_seconds: float | None = None
    ) -> Any:
        """As `write`, of a body that is JSON already."""
        headers = {"Idempotency-Key": secrets.token_hex(16), **_leased(lease)}
        ask = self._asking(method, path, data, headers, within_seconds)
        return self._insist(path, ask, is_write=True, patience_seconds=within_seconds and 0.0)

    def read(self, path: str, *, lease: str = "", **query: str | int | None) -> Any:
        """The answer to a question. Raises as `write`."""
        target = _asked(path, query)
        return self._insist(target, self._asking("GET", target, None, _leased(lease)), is_write=False)

    def upload(self, path: str, file: BinaryIO, size: int) -> Any:
        """Send `size` bytes of a file as they are, from where it stands. Raises as `write`."""
        begin = file.tell()
        headers = {
            "Idempotency-Key": secrets.token_hex(16),
            "Content-Type": "application/octet-stream",
            "Content-Length": str(size),
        }

        def send() -> gate.Answer:
            file.seek(begin)
            with self._exchange("POST", path, headers, limits.DURABLE_REPLAY_SECONDS, body=file) as response:
                answer = response.read(limits.DURABLE_ANSWER_MAX_BYTES)
                return gate.Answer(response.status, answer, None)

        return self._insist(path, send, is_write=True)

    def download(self, path: str, max_bytes: int) -> bytes:
        """The bytes of an answer that is no JSON. Raises `Unavailable` where they are not whole."""

        def ask() -> gate.Answer:
            with self._exchange("GET", path, {}, limits.DURABLE_REPLAY_SECONDS) as response:
                return gate.Answer(response.status, response.read(max_bytes + 1), None)

        return self._insist(path, ask, is_write=False, is_json=False)

    def lines(
        self,
        path: str,
        *,
        lease: str = "",
        max_bytes: int,
        line_max_bytes: int = limits.DURABLE_REPLAY_LINE_MAX_BYTES,
        **query: str | int,
    ) -> Iterator[Any]:
        """The JSON values of a streamed answer, one a line, of which one at a time is held. Raises `Unavailable` where it is cut
        or longer than that."""
        target = _asked(path, query)
        try:
            with self._exchange("GET", target, _leased(lease), limits.DURABLE_REPLAY_SECONDS) as response:
                if response.status >= 300:
                    body = response.read(limits.DURABLE_ANSWER_MAX_BYTES)
                    raise self._refused(target, response.status, body)
                yield from _parsed_lines(response, max_bytes, line_max_bytes)
        except gate.Unusable as error:
            raise self._unusable(error) from error
        except gate.NoAnswer as error:
            raise errors.Unavailable(f"{path}: the answer was cut ({error})") from error

    def _unusable(self, error: gate.Unusable) -> errors.CoreError:
        if isinstance(error, gate.BadToken):
            return errors.Forbidden(f"what is in {self._settings.token_origin} is no token: {error}")
        return errors.Invalid(f"{error}; see MEMORYD_URL")

    def _exchange(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        seconds: float,
        body: BinaryIO | None = None,
    ) -> AbstractContextManager[HTTPResponse]:
        return gate.exchange(
            method,
            self._settings.url,
            _API + path,
            token=self._settings.token(),
            timeout_seconds=seconds,
            body=body,
            headers=headers,
        )

    def _asking(
        self,
        method: str,
        path: str,
        data: bytes | None,
        headers: Mapping[str, str],
        within_seconds: float | None = None,
    ) -> Callable[[], gate.Answer]:
        return lambda: gate.request(
            method,
            self._settings.url,
            _API + path,
            token=self._settings.token(),
            timeout_seconds=within_seconds or limits.DURABLE_REQUEST_SECONDS,
            body=data,
            headers=headers,
            answer_max_bytes=limits.DURABLE_ANSWER_MAX_BYTES,
            has_alarm=False,
        )

    def _insist(
        self,
        path: str,
        ask: Callable[[], gate.Answer],
        *,
        is_write: bool,
        is_json: bool = True,
        patience_seconds: float | None = None,
    ) -> Any:
        patience = self._patience_seconds if patience_seconds is None else patience_seconds
        end = self._clock.monotonic() + patience
        pause, is_unknown = limits.DURABLE_RETRY_SECONDS, False
        while True:
            retry_after = 0.0
            try:
                answer = ask()
            except gate.Unusable as error:
                raise self._unusable(error) from error
            except gate.NoAnswer as error:
                is_unknown |= error.was_sent
                why = f"no answer from {self._settings.url} ({error})"
            else:
                if answer.status not in (202, 408, 429, 502, 503, 504):
                    return self._read(path, answer, is_json=is_json)
                # 429 and 503: nothing was kept. 202 and 504: it may have been.
                is_unknown |= answer.status in (202, 408, 502, 504)
                why, retry_after = _said(answer.status, answer.body), answer.retry_after or 0.0
            wait = max(pause, retry_after)
            if self._clock.monotonic() + wait > end:
                raise self._gave_up(path, why, is_unknown=is_unknown and is_write)
            self._clock.sleep(wait)
            pause = min(2 * pause, limits.DURABLE_RETRY_MAX_SECONDS)

    def _gave_up(self, path: str, why: str, *, is_unknown: bool) -> errors.CoreError:
        if is_unknown:
            return errors.OutcomeUnknown(f"{path}: {why}; it may have taken effect")
        return errors.Unavailable(f"{path}: {why}")

    def _read(self, path: str, answer: gate.Answer, *, is_json: bool) -> Any:
        if answer.status >= 300:
            raise self._refused(path, answer.status, answer.body)
        if not is_json:
            return answer.body
        return _value(answer.body, answer.status) if answer.body else None

    def _refused(self, path: str, status: int, body: bytes) -> errors.CoreError:
        """The error that an answer stands for, of the server's class."""
        found = _value(body, status)
        if not isinstance(found, dict):
            return errors.Unavailable(
                f"what answers at {self._settings.url} (HTTP {status}) is not memoryd's gate"
            )
        said = str(found.get("error", f"HTTP {status}"))[:2000]
        if status == 401:
            return errors.Forbidden(self._settings.refused(self._settings.token()))
        if status >= 500:
            return errors.Unavailable(f"{path}: {said}")
        kind = BY_CODE.get(str(found.get("code", "")), errors.Invalid)
        detail = {name: value for name, value in found.items() if name not in ("error", "code", "advice")}
        return kind(said, detail=detail)


def _leased(lease: str) -> dict[str, str]:
    return {LEASE_HEADER: lease} if lease else {}


def _asked(path: str, query: Mapping[str, str | int | None]) -> str:
    given = {name: str(value) for name, value in query.items() if value is not None}
    return path + ("?" + urlencode(given) if given else "")


def _value(body: bytes, status: int) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        if status < 300:
            raise errors.Unavailable(
                f"the answer (HTTP {status}) is no JSON; is the URL memoryd's?"
            ) from None
        return None


def _said(status: int, body: bytes) -> str:
    found = _value(body, status) if status >= 300 else None
    return str(found["error"])[:500] if isinstance(found, dict) and "error" in found else f"HTTP {status}"


def _parsed_lines(response: Any, max_bytes: int, line_max_bytes: int) -> Iterator[Any]:
    left = max_bytes
    while line := response.readline(min(left, line_max_bytes) + 1):
        left -= len(line)
        if left < 0 or not line.endswith(b"\n"):
            raise errors.Unavailable("the answer is longer than it may be, or was cut")
        try:
            yield json.loads(line)
        except (ValueError, RecursionError) as error:
            raise errors.Unavailable("a line of the answer is no JSON") from error

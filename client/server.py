"""Talking to a memoryd server as a person does: tools, lists, and errors that end a command."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote, urlencode

from client import gate
from client.settings import ClientSettings


class ServerError(Exception):
    """The server said no, or did not answer. `exit_code` is what the command line ends with."""

    def __init__(self, message: str, *, code: str, status: int = 0) -> None:
        super().__init__(message)
        self.code = code
        self.status = status

    @property
    def exit_code(self) -> int:
        """1: the request was refused; 3: the server is not there or cannot take it now; 4: the token is not accepted."""
        if self.status in (401, 403):
            return 4
        return 3 if self.status in (0, 429, 503, 504) else 1


class Server:
    """One server, reached with one token."""

    def __init__(self, settings: ClientSettings, *, seconds: float = 15.0) -> None:
        self._settings = settings
        self._seconds = seconds
        self.url = settings.url.rstrip("/")

    def tool(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Call an MCP tool by its plain HTTP twin; arguments that are None are left out."""
        given = {key: value for key, value in arguments.items() if value is not None}
        return self.request("POST", f"/api/v1/tools/{quote(name)}", body=given)[0]

    def get(self, path: str, **query: Any) -> Any:
        return self.page(path, **query)[0]

    def page(self, path: str, **query: Any) -> tuple[Any, str | None]:
        """One page of a list and the path of the next one (None at the end)."""
        given = {key: str(value) for key, value in query.items() if value is not None}
        answer, link = self.request("GET", path + ("?" + urlencode(given) if given else ""))
        return answer, _next_page(link)

    def request(self, method: str, path: str, body: Any = None) -> tuple[Any, str]:
        """Send one request: the parsed JSON answer and its `Link` header, or `ServerError`."""
        data = None if body is None else json.dumps(body).encode()
        token = self._settings.token()
        try:
            answer = gate.request(
                method, self.url, path, token=token, timeout_seconds=self._seconds, body=data
            )
        except gate.NoAnswer as error:
            raise ServerError(
                f"no answer from {self.url} ({error}); is it running? start it with: memoryd up",
                code="unreachable",
            ) from error
        return _answer(answer.body, answer.status), answer.link


def _answer(raw: bytes, status: int) -> Any:
    try:
        value: Any = json.loads(raw) if raw else None
    except ValueError:
        value = {"message": raw[:200].decode("utf-8", "replace")}
    if status < 400:
        return value
    error: dict[str, Any] = value if isinstance(value, dict) else {}
    nested = error.get("error")
    if isinstance(nested, dict):
        error = nested
    message = error.get("message") or (nested if isinstance(nested, str) else f"HTTP {status}")
    raise ServerError(str(message), code=str(error.get("code", status)), status=status)


def _next_page(link: str) -> str | None:
    for part in link.split(","):
        target, _, parameters = part.strip().partition(";")
        if 'rel="next"' in parameters:
            return target.strip("<> ")
    return None

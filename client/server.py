"""Talking to a memoryd server as a person does: tools, lists, and errors that end a command."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlencode

from client import gate
from client.marker import marker_for
from client.output import visible
from client.place import repository_of
from client.reference import placed, scoped
from client.settings import ClientSettings, home_of
from memory_core import limits

#: Percent-encoded.
DIRECTORY_HEADER = "X-Memoryd-Directory"


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
        given = {key: value for key, value in with_marker(arguments).items() if value is not None}
        return self.request("POST", f"/api/v1/tools/{quote(name)}", body=given)[0]

    def get(self, path: str, /, **query: Any) -> Any:
        return self.page(path, **query)[0]

    def page(self, path: str, /, **query: Any) -> tuple[Any, str | None]:
        """One page of a list and the path of the next one (None at the end)."""
        given = {key: str(value) for key, value in with_marker(query).items() if value is not None}
        answer, link = self.request("GET", path + ("?" + urlencode(given) if given else ""))
        return answer, _next_page(link)

    def listed(
        self, path: str, /, *, limit: int | None, page: int, **query: str | None
    ) -> Iterator[dict[str, Any]]:
        """The items of a list that goes on over pages of `page`; all of them where there is no limit."""
        given = {name: value for name, value in query.items() if value is not None}
        given["limit"] = str(min(limit or page, page))
        following: str | None = path
        left = limit
        while following is not None:
            found, following = self.page(following, **given)
            # The address of the next part says all of it already.
            given = {}
            yield from found if left is None else found[:left]
            if left is not None:
                left -= len(found)
                if left <= 0:
                    return

    def request(self, method: str, path: str, body: Any = None) -> tuple[Any, str]:
        """Send one request: the parsed JSON answer and its `Link` header, or `ServerError`."""
        data = None if body is None else json.dumps(body).encode()
        self._check(data)
        token = self._settings.token()
        try:
            answer = gate.request(
                method,
                self.url,
                path,
                token=token,
                timeout_seconds=self._seconds,
                body=data,
                headers=_whereabouts(),
            )
        except gate.BadToken as error:
            raise ServerError(
                f"what is in {self._settings.token_origin} is no token: {error}",
                code="unauthenticated",
                status=401,
            ) from error
        except gate.BadAddress as error:
            raise ServerError(f"{error}; see MEMORYD_URL", code="invalid", status=400) from error
        except gate.NoAnswer as error:
            raise ServerError(
                f"no answer from {self.url} ({error}); is it running? start it with: memoryd up",
                code="unreachable",
            ) from error
        if answer.status == 401:
            raise ServerError(self._settings.refused(token), code="unauthenticated", status=401)
        return _answer(answer.body, answer.status, self.url), answer.link

    def _check(self, data: bytes | None) -> None:
        """What the server would refuse without a word."""
        if data is not None and len(data) > limits.REQUEST_BODY_MAX_BYTES:
            raise ServerError(
                f"too much at once: a request has at most {limits.REQUEST_BODY_MAX_BYTES // limits.MIB} MB",
                code="too_large",
                status=413,
            )


def with_marker(arguments: dict[str, Any]) -> dict[str, Any]:
    """Arguments whose project was not named, with that of the directory's marker file, if there is one.

    `MEMORYD_IGNORE_MARKER=1` leaves it out, and so does a search of all projects. Names are taken as they are printed.
    """
    if "workspace" not in arguments or "project" not in arguments:
        return arguments
    arguments = _as_printed(arguments)
    if arguments["project"] is not None or arguments.get("global"):
        return arguments
    if os.environ.get("MEMORYD_IGNORE_MARKER", "").lower() in ("1", "true", "yes", "on"):
        return arguments
    try:
        marker = marker_for(os.getcwd(), home_of(dict(os.environ)))  # noqa: PTH109 — as in a hook there
    except OSError:
        return arguments
    if marker.is_broken:
        sys.stderr.write(f"memoryd: {visible(marker.problem)}; it is passed over\n")
    if "project" not in marker.scope or arguments["workspace"] not in (None, marker.scope["workspace"]):
        return arguments
    return {**arguments, "workspace": marker.scope["workspace"], "project": marker.scope["project"]}


def _as_printed(arguments: dict[str, Any]) -> dict[str, Any]:
    """`workspace/project` and `workspace/project:path` taken apart."""
    scope = arguments["workspace"], arguments["project"]
    path = arguments.get("path")
    if path is None:
        return {**arguments, **dict(zip(("workspace", "project"), scoped(*scope), strict=True))}
    return {**arguments, **dict(zip(("path", "workspace", "project"), placed(path, *scope), strict=True))}


def _whereabouts() -> dict[str, str]:
    """Where the command was given: without a named project that directory's project is meant, as in a hook there."""
    try:
        directory = os.getcwd()  # noqa: PTH109 — a text for a header
    except OSError:
        return {}
    if directory == os.path.expanduser("~"):  # noqa: PTH111 — holds everything; no project is made of it
        return {}
    return {DIRECTORY_HEADER: quote(repository_of(directory) or directory)}


def _answer(raw: bytes, status: int, url: str) -> Any:
    try:
        value: Any = json.loads(raw) if raw else None
    except ValueError as unreadable:
        raise ServerError(
            f"what answers at {url} (HTTP {status}) is not memoryd's gate; is the URL right?",
            code="not_memoryd",
            status=status,
        ) from unreadable
    if status < 400:
        return value
    error: dict[str, Any] = value if isinstance(value, dict) else {}
    nested = error.get("error")
    if isinstance(nested, dict):
        error = nested
    message = error.get("message") or (nested if isinstance(nested, str) else f"HTTP {status}")
    if str(message).startswith("scope unknown"):
        message = f"{message} (--project NAME; search also takes --everywhere)"
    raise ServerError(str(message), code=str(error.get("code", status)), status=status)


def _next_page(link: str) -> str | None:
    for part in link.split(","):
        target, _, parameters = part.strip().partition(";")
        if 'rel="next"' in parameters:
            return target.strip("<> ")
    return None

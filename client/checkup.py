"""What `memoryd doctor` looks at: each check is a function that says what it found, or why it could not."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from client import checkup_jobs
from client.findings import Failed, Finding, finding
from client.jobs import lasting
from client.server import Server
from client.settings import ClientSettings
from client.spool import Spool
from memory_core import limits
from memory_core.domain import place
from memory_core.domain.recalled import unfenced

PROJECT = place.CHECK_PROJECT
#: Files and folders that a line of the report names.
_NAMED = 3


def examine(settings: ClientSettings) -> Iterator[Finding]:
    """Every check in order; the later ones are left out when there is no server to ask."""
    server = Server(settings)
    yield finding("python", lambda: f"{sys.version.split()[0]} at {sys.executable}")
    yield finding("client settings", lambda: _client(settings))
    yield finding("git", _git)
    yield finding("spool", lambda: _spool(settings))
    status: dict[str, Any] = {}
    reached = finding("server", lambda: _server(server, status))
    yield reached
    if reached.is_ok:
        for part in ("version", "port", "data_dir", "broker", "writer", "sqlite", "git"):
            yield finding(part, lambda part=part: _part(status, part))
        yield finding("wiki", lambda: _wiki(status))
        yield from checkup_jobs.examine(server, status)
        yield from _round_trip(server)


def _client(settings: ClientSettings) -> str:
    if settings.problem:
        raise Failed(settings.problem)
    if not settings.token():
        raise Failed(f"no token in {settings.token_origin}; run: memoryd up, or set MEMORYD_TOKEN_FILE")
    return f"{settings.url}, token from {settings.token_origin}"


def _git() -> str:
    found = shutil.which("git")
    if found is None:
        raise Failed("git is not installed; the wiki's history needs it")
    return subprocess.run(
        [found, "--version"], capture_output=True, text=True, timeout=10, check=True
    ).stdout.strip()


def _spool(settings: ClientSettings) -> str:
    spool = Spool(settings.spool_dir)
    waiting, rejected = len(spool.names()), len(spool.rejected())
    if rejected:
        raise Failed(
            f"{waiting} waiting; {rejected} refused by the server: `memoryd spool list` says why, then retry or discard them"
        )
    waits = spool.oldest_seconds(time.time_ns() // 1000)
    if waits is not None and waits > limits.SPOOL_WAIT_SECONDS:
        raise Failed(
            f"{waiting} waiting, the oldest for {lasting(waits)}: `memoryd hook --drain` delivers them or says why not"
        )
    return f"{waiting} events wait in {settings.spool_dir}"


def _server(server: Server, status: dict[str, Any]) -> str:
    status.update(server.get("/api/v1/status"))
    return f"answers at {server.url}"


def _part(status: dict[str, Any], part: str) -> str:
    value = status.get(part)
    if value is None:
        raise Failed("the server does not say")
    if isinstance(value, dict):
        said = ", ".join(
            f"{name.replace('_', ' ')} {_worded(item)}" for name, item in value.items() if name != "status"
        )
        if value.get("status") != "ok":
            raise Failed(f"{value.get('status')}: {said}")
        return said
    return str(value)


def _wiki(status: dict[str, Any]) -> str:
    """Whether files and pages agree, as the last look at the wiki found."""
    found = status.get("wiki")
    if not isinstance(found, dict):
        raise Failed("the server does not say")
    if found.get("held") or found.get("away"):
        gone = [
            f"{one['missing']} of {one['pages']} pages of {one['project']}: {one.get('reason', 'no file')}"
            for one in found.get("held", [])
        ]
        of = "; ".join(filter(None, (found.get("away", ""), *gone)))
        raise Failed(
            f"files vanished ({of}) and nothing was deleted: put them back, or `memoryd heal` writes them again "
            "(--accept-deletions if they are to go)"
        )
    return f"{found.get('files', 0)} files of {found.get('pages', 0)} pages{_passed_over(found)}"


def _passed_over(found: dict[str, Any]) -> str:
    """Files and folders that are no pages, the first ones by name."""
    strangers = found.get("strangers") or {}
    number = found.get("troubles_in_all", 0) + len(strangers)
    named = [f"{one['file']} ({one['trouble']})" for one in found.get("troubles", [])]
    named += [f"{folder} ({why})" for folder, why in strangers.items()]
    if not number:
        return ""
    more = f"; and {number - _NAMED} more, see `memoryd status`" if number > _NAMED else ""
    return f"; {number} files or folders are passed over: {'; '.join(named[:_NAMED])}{more}"


def _worded(value: Any) -> str:
    return {True: "yes", False: "no"}.get(value, str(value)) if isinstance(value, bool) else str(value)


def _round_trip(server: Server) -> Iterator[Finding]:
    """Write, read, find and delete one page in a scratch project; a later step needs the earlier ones."""
    word = f"probe{uuid.uuid4().hex[:12]}"
    path = f"checks/{word}.md"
    steps: list[tuple[str, Callable[[], str]]] = [
        ("write", lambda: _wrote(server, path, word)),
        ("read", lambda: _read(server, path, word)),
        ("search", lambda: _searched(server, path, word)),
        ("delete", lambda: _deleted(server, path, word)),
    ]
    for name, step in steps:
        found = finding(name, step)
        yield found
        if name == "write" and not found.is_ok:
            return


def _wrote(server: Server, path: str, word: str) -> str:
    body = f"# A check of memoryd\n\nThe word of this check is {word}.\n"
    answer = server.tool("memory_write_page", path=path, body=body, project=PROJECT)
    if answer.get("status") == "pending":
        raise Failed("accepted, but the writer did not commit it in time")
    return f"{PROJECT}:{answer['path']}"


def _read(server: Server, path: str, word: str) -> str:
    page = server.tool("memory_read_page", path=path, project=PROJECT)
    if word not in page["body"]:
        raise Failed("the page came back with another text")
    return f"{len(unfenced(page['body']))} characters"


def _searched(server: Server, path: str, word: str) -> str:
    hits = server.tool("memory_query", query=word, project=PROJECT).get("hits", [])
    if path not in [hit["path"] for hit in hits]:
        raise Failed("the page is not found by its only word")
    return f"{len(hits)} hit"


def _deleted(server: Server, path: str, word: str) -> str:
    server.tool("memory_delete_page", path=path, project=PROJECT)
    if server.tool("memory_query", query=word, project=PROJECT).get("hits"):
        raise Failed("the page is found although it was deleted")
    return "gone from search"

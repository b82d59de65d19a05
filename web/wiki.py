"""`/api/v1/wiki`: how the files stand beside the tables, and rebuilding one side from the other."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, Response, request

from memory_core.clock import rfc3339
from memory_core.commands.wiki_tasks import StartHeal, StartReindex
from memory_core.errors import Invalid
from memory_core.store import wiki_files, wiki_tasks
from memory_core.store.wiki_tasks import WikiTask
from web.answers import json_answer
from web.auth import current, needs
from web.bodies import parse_json, read_body
from web.parts import Parts
from web.vitals import wiki_state


def blueprint(parts: Parts) -> Blueprint:
    routes = Blueprint("wiki", __name__, url_prefix="/api/v1/wiki")

    @routes.get("")
    @needs("read")
    def _wiki() -> Response:
        with parts.database.snapshot() as reading:
            task, pages = wiki_tasks.newest(reading), wiki_files.live_pages(reading)
        state = wiki_state(parts.settings, parts.gate.clock)
        return json_answer({**state, "pages_in_tables": pages, "task": None if task is None else _task(task)})

    @routes.post("/reindex")
    @needs("admin")
    def _reindex() -> Response:
        flags = _flags("force", "history")
        if flags.get("history") and not (parts.settings.wiki / ".git").is_dir():
            raise Invalid("the wiki has no history in git; begin without --history")
        return _submitted(parts, StartReindex(**flags))

    @routes.post("/heal")
    @needs("admin")
    def _heal() -> Response:
        return _submitted(parts, StartHeal(**_flags("broken", "accept_deletions")))

    return routes


def _submitted(parts: Parts, command: object) -> Response:
    return json_answer(parts.context(current(), request.environ).submit(command))


def _flags(*names: str) -> dict[str, bool]:
    body = read_body(request)
    given: Any = parse_json(body) if body.strip() else {}
    if not isinstance(given, dict) or set(given) - set(names):
        raise Invalid(f"the body is a JSON object with any of: {', '.join(names)}")
    if not all(isinstance(value, bool) for value in given.values()):
        raise Invalid(f"{', '.join(names)}: true or false")
    return given


def _task(task: WikiTask) -> dict[str, Any]:
    return {
        "kind": task.kind,
        "options": dict(task.options),
        "counts": dict(task.counts),
        "started_at": rfc3339(task.started_at),
        "finished_at": None if task.finished_at is None else rfc3339(task.finished_at),
    }

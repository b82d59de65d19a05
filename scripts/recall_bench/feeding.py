"""Bringing a labelled set in as a client does: sessions of a project, a turn per document, with speaker and time."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from memory_core.agents.generic import read
from memory_core.commands.capture import RecordObservation
from memory_core.domain.capture import capped
from memory_core.ids import id_text
from memory_core.store.database import Database
from memory_core.store.statement import text_statement
from memory_core.tools import call_tool
from scripts.recall_bench.sets import LabelledSet
from tests.books import Books
from tests.e2e.running import Running, wait_until
from tests.tools.context import Context

_WORKSPACE = "bench"
_BATCH_ITEMS = 100
_SEED_SECONDS = 600.0
_SILENT_SECONDS = 120.0
_COUNT = text_statement("SELECT count(*) AS found FROM observations")
_EVENTS = text_statement(
    "SELECT o.id, s.vendor_key FROM observations o JOIN sessions s ON s.id = o.session_id"
    " WHERE o.kind <> 'session-end' ORDER BY o.seq"
)
#: Asks `memory_query` in a project: its answer.
Ask = Callable[[str, str, int], dict[str, Any]]


def payloads(labelled: LabelledSet) -> Iterator[tuple[str, dict[str, Any]]]:
    """Project and event of each document in order, and of each session's end."""
    last: dict[str, str] = {}
    for document in labelled.documents:
        last[document["session"]] = document["id"]
    for document in labelled.documents:
        role = document["speaker"] if document["speaker"] in ("user", "assistant") else "user"
        event: dict[str, Any] = {
            "session_id": document["session"],
            "speaker": role,
            "text": document["text"],
            "message_id": document["id"],
        }
        if document["speaker"] and document["speaker"] != role:
            event["speaker_name"] = document["speaker"]
        if document["ts"]:
            event["occurred_at"] = f"{document['ts']}:00Z"
        yield project_of(document["scope"]), event
        if last[document["session"]] == document["id"]:
            yield project_of(document["scope"]), {"session_id": document["session"], "event": "session-end"}


def project_of(scope: str) -> str:
    return scope.lower()


@contextmanager
def in_process(labelled: LabelledSet, keep: Path | None) -> Generator[tuple[Ask, Database]]:
    """The adapter, the caps and the writer's commands in this process; `keep`: a directory that stays."""
    with tempfile.TemporaryDirectory() as scratch:
        directory = keep or Path(scratch)
        directory.mkdir(parents=True, exist_ok=True)
        is_new = not (directory / "memory.sqlite").exists()
        books = Books(directory)
        if is_new:
            for project, payload in payloads(labelled):
                event = capped(read(payload, {}))
                books.apply(
                    RecordObservation(event=event, source="bench", workspace=_WORKSPACE, project=project),
                    principal="owner",
                )
        context = Context(books=books, principal="owner")

        def ask(text: str, project: str, limit: int) -> dict[str, Any]:
            asked = {
                "query": text,
                "workspace": _WORKSPACE,
                "project": project,
                "limit": limit,
                "explain": True,
            }
            return call_tool("memory_query", asked, context)

        try:
            yield ask, books.database
        finally:
            books.close()


@contextmanager
def over_http(labelled: LabelledSet, embedder: str) -> Generator[tuple[Ask, Database]]:
    """A whole stack: `/hook/batch`, the writer, the embeddings of `embedder` (may be `none`), `/api/v1/tools/memory_query`."""
    with tempfile.TemporaryDirectory() as scratch:
        environ = {"MEMORYD_MODELS__EMBED_PROVIDER": embedder}
        stack = Running(Path(scratch), environ=environ).start()
        database = Database(stack.data_dir / "db" / "memory.sqlite")
        try:
            events = list(payloads(labelled))
            for at in range(0, len(events), _BATCH_ITEMS):
                _send(stack, events[at : at + _BATCH_ITEMS])
            wait_until(
                lambda: _count(database) >= len(events), seconds=_SEED_SECONDS, saying="every event is stored"
            )
            if embedder != "none":
                _embed(stack)

            def ask(text: str, project: str, limit: int) -> dict[str, Any]:
                return stack.tool(
                    "memory_query",
                    query=text,
                    workspace=_WORKSPACE,
                    project=project,
                    limit=limit,
                    explain=True,
                )

            yield ask, database
        finally:
            database.close()
            stack.stop()


def documents_by_event(labelled: LabelledSet, database: Database) -> dict[str, str]:
    """The document that each event id stands for: by its place in its session."""
    waiting: dict[str, list[str]] = {}
    for document in labelled.documents:
        waiting.setdefault(document["session"], []).append(document["id"])
    with database.snapshot() as reading:
        rows = reading.rows(_EVENTS)
    return {id_text(row["id"]): waiting[row["vendor_key"]].pop(0) for row in rows}


def _embed(stack: Running) -> None:
    """Raises `AssertionError` when no text got its vector for long."""
    status, answer = stack.request("POST", "/api/v1/embeddings", {"all_projects": True})
    assert status in (200, 202), answer
    waiting, since = -1, time.monotonic()
    while (state := stack.request("GET", "/api/v1/embeddings")[1])["pending"]:
        if state["pending"] != waiting:
            waiting, since = state["pending"], time.monotonic()
            print(f"embedded: {state['progress']}", file=sys.stderr)
        assert time.monotonic() - since < _SILENT_SECONDS, state
        time.sleep(1)  # as a client would
    assert state["state"] != "off", state


def _count(database: Database) -> int:
    with database.snapshot() as reading:
        return reading.rows(_COUNT)[0]["found"]


def _send(stack: Running, events: list[tuple[str, dict[str, Any]]]) -> None:
    """A batch as a shim sends it, again while the backlog is too long."""
    items = [
        {
            "url": f"/hook?{urlencode({'agent': 'generic', 'workspace': _WORKSPACE, 'project': project})}",
            "body": event,
        }
        for project, event in events
    ]
    while (answer := stack.request("POST", "/hook/batch", items))[0] == 429:
        time.sleep(0.2)  # as a client would
    assert answer[0] in (200, 202), answer
    assert answer[1]["accepted"] == len(items), answer

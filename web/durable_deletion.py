"""Deleting a durable session over HTTP, and what that would take away and leave."""

from __future__ import annotations

from typing import Any, Final

from flask import Blueprint, Response, request

from memory_core import limits
from memory_core.commands.durable_deletion import DeleteSession, DropDeleted, busy_until, page_of
from memory_core.errors import Invalid, NotFound
from memory_core.ids import id_bytes, id_text
from memory_core.store import durable_sessions, session_events, session_jobs
from memory_core.store.database import Snapshot
from web import lists
from web.answers import json_answer, submitted
from web.auth import current, needs
from web.parts import Parts
from web.query import takes
from web.shapes import time_text

#: What a deletion does not reach; the page is one of them unless it is asked for.
STAYS: Final = ("knowledge", "git_history", "backups", "free_pages")


def blueprint(parts: Parts) -> Blueprint:
    routes = Blueprint("durable_deletion", __name__, url_prefix="/api/v1/durable-sessions")

    @routes.delete("/<text>")
    @needs("write")
    @takes("with_pages", "preview")
    def _delete(text: str) -> Response:
        session_id, with_pages = id_bytes(text), _flag("with_pages")
        context = parts.context(current(), request.environ)
        with parts.database.snapshot() as reading:
            row = durable_sessions.shown(reading, session_id, owner=current().principal)
            told = None if row is None else _told(reading, row, parts.clock.now_us(), with_pages)
            if told is None and (_flag("preview") or not context.was_sent(reading)):
                raise NotFound(f"there is no durable session {text[:64]}")
        if _flag("preview"):
            return json_answer(told)
        answer = context.submit(DeleteSession(session=session_id, with_pages=with_pages))
        # Not under the caller's key: how many slices there are is no part of what was asked.
        beside = parts.context(current(), {})
        for _ in range(limits.DELETED_SLICES_PER_REQUEST):
            if not answer.get("left"):
                break
            answer = beside.submit(DropDeleted(session=session_id))
        return submitted(answer if answer.get("status") == "pending" else {**(told or {}), **answer})

    return routes


def _told(reading: Snapshot, row: Any, now: int, with_pages: bool) -> dict[str, Any]:
    """What goes, what stays, and what would be lost because nothing was made of it yet."""
    session_id, last = row["session_id"], row["last_sequence"]
    count, size = session_events.total(reading, session_id, after=0, through=last)
    page = page_of(reading, session_id)
    until = busy_until(reading, session_id, row["lease_until"], now)
    return {
        "id": id_text(session_id),
        "title": row["title"],
        "events": count,
        "event_bytes": size,
        "page": None if page is None else page.path,
        "busy_until": time_text(until),
        "has_unfinished_turn": durable_sessions.has_open_turn(reading, session_id),
        "undistilled_events": session_jobs.undistilled(reading, session_id, last),
        "stays": [*STAYS, *(["page"] if page is not None and not with_pages else [])],
        "is_secure_erasure": False,
    }


def _flag(name: str) -> bool:
    text = lists.given(name)
    if text not in (None, "0", "1", "true", "false"):
        raise Invalid(f"{name} is 1 or 0")
    return text in ("1", "true")

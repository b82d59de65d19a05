"""Pages of `/ui` that show what went on: sessions, one session event by event, handoffs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from flask import Blueprint, render_template

from memory_core.domain.durable_session import Origin
from memory_core.domain.project import Project
from memory_core.errors import NotFound
from memory_core.ids import id_bytes
from memory_core.store import durable_sessions, handoffs, observations, sessions
from memory_core.store.database import Snapshot
from web import lists
from web.auth import current, needs
from web.parts import Parts
from web.query import takes
from web.shapes import HANDOFF_STATES
from web.ui_wiki import named, told_handoff

_EVENTS = 100
_TEXT_CHARS = 4_000
_HEADINGS = {
    "user-prompt": "Prompt",
    "stop": "Answer",
    "session-start": "Session begins",
    "session-end": "Session ends",
}


def add(routes: Blueprint, parts: Parts) -> None:
    @routes.get("/sessions", endpoint="sessions")
    @needs("read")
    @takes("limit", "cursor", "workspace", "project")
    def _sessions() -> str:
        limit = lists.limit()
        with parts.database.snapshot() as reading:
            scope = _scope(reading)
            rows = sessions.listed(
                reading,
                project_id=scope.id if scope else None,
                owner=current().principal,
                before=lists.moment_and_id(),
                limit=limit,
            )
        last = lists.after_row(rows[-1]["last_event_at"], rows[-1]["id"]) if len(rows) >= limit else None
        following = lists.next_address(cursor=last) if last else None
        return render_template("sessions.html", sessions=rows, scope=scope, following=following)

    @routes.get("/sessions/<text>")
    @needs("read")
    @takes("limit", "after", "event")
    def session(text: str) -> str:
        limit, after, event = lists.limit(_EVENTS), lists.number("after") or 0, lists.given("event")
        with parts.database.snapshot() as reading:
            row = sessions.one(reading, id_bytes(text))
            # Another person's session is as good as none.
            if row is None or row["owner"] not in (None, current().principal):
                raise NotFound("There is no such session.")
            if event:
                # It is read from that event on.
                after = observations.before(reading, row["id"], id_bytes(event))
            durable = durable_sessions.one(reading, row["id"])
            page = sessions.page_of(reading, row["page_id"]) if row["page_id"] else None
            rows = observations.of_session(
                reading, row["id"], after=after, limit=limit, body_max_chars=_TEXT_CHARS
            )
        return render_template(
            "session.html",
            session=row,
            page_path=page["path"] if page is not None and page["tombstoned_at"] is None else None,
            events=[_event(event) for event in rows],
            is_exact=durable is not None and durable.origin is Origin.CLIENT,
            after=after,
            following=lists.next_address(event="", after=rows[-1]["seq"]) if len(rows) >= limit else None,
        )

    @routes.get("/handoffs", endpoint="handoffs")
    @needs("read")
    @takes("limit", "state", "before", "workspace", "project")
    def _handoffs() -> str:
        limit, state = lists.limit(), lists.state(*HANDOFF_STATES)
        with parts.database.snapshot() as reading:
            scope = _scope(reading)
            rows = handoffs.listed(
                reading,
                project_id=scope.id if scope else None,
                state=state,
                owner=current().principal,
                before=lists.number("before"),
                limit=limit,
            )
        return render_template(
            "handoffs.html",
            handoffs=[told_handoff(row) for row in rows],
            scope=scope,
            state=state,
            states=HANDOFF_STATES,
            following=lists.next_address(before=rows[-1]["created_at"]) if len(rows) >= limit else None,
        )


def _scope(reading: Snapshot) -> Project | None:
    workspace, project = lists.given("workspace"), lists.given("project")
    return named(reading, workspace, project) if workspace or project else None


def _event(row: Mapping[str, Any]) -> dict[str, Any]:
    said = (row["body"] or "").strip()
    return {
        **{name: row[name] for name in ("speaker", "tool", "outcome", "command", "result", "recorded_at")},
        # What was run stands below in full.
        "heading": _HEADINGS.get(row["kind"])
        or (row["command"] and row["tool"])
        or row["title"]
        or row["kind"],
        "said": said,
        "is_cut": (row["body_chars"] or 0) > _TEXT_CHARS,
        "body_chars": row["body_chars"],
        "paths": json.loads(row["paths"] or "[]"),
    }

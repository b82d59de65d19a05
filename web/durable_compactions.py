"""`/api/v1/durable-sessions/<id>/compactions`: summing up the beginning of a session, and what came of that."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import msgspec
from flask import Blueprint, Response, request

from memory_core import limits
from memory_core.commands.compaction import QueueCompaction, planned
from memory_core.commands.durable_lease import find
from memory_core.domain.compaction import Plan, Policy
from memory_core.domain.durable_session import DurableSession
from memory_core.errors import Invalid
from memory_core.ids import id_bytes, id_text
from memory_core.store import compactions, jobs
from memory_core.store.database import Snapshot
from memory_core.store.jobs import Listed
from web import lists
from web.answers import json_answer, submitted
from web.auth import current, needs
from web.durable import small
from web.job_shapes import job_shape
from web.parts import Parts
from web.query import takes
from web.shapes import time_text


class Compact(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Either up to an event, or by plan: from the model's context window and what is used of it (else the events are counted)."""

    through_sequence: int | None = None
    context_window: int | None = None
    current_tokens: int | None = None
    preserve_recent_turns: int = limits.COMPACTION_PRESERVED_TURNS_DEFAULT


def blueprint(parts: Parts) -> Blueprint:
    routes = Blueprint("durable_compactions", __name__, url_prefix="/api/v1/durable-sessions")

    @routes.post("/<text>/compactions")
    @needs("write")
    def _compact(text: str) -> Response:
        asked = small(Compact)
        context = parts.context(current(), request.environ)
        with parts.database.snapshot() as reading:
            session = find(reading, id_bytes(text), current().principal)
            was_sent = context.was_sent(reading)
            under_way = compactions.unfinished(reading, session.id)
            plan = None if asked.through_sequence is not None else _plan(reading, session, asked)
            other = None if was_sent or asked.through_sequence is not None or under_way is None else under_way
            waiting = None if other is None else jobs.one(reading, other["job_id"])
        if other is not None and waiting is not None:
            about = {
                "id": id_text(waiting.id),
                "state": waiting.state.value,
                "through_sequence": other["through_sequence"],
            }
            return json_answer({"plan": None, "job": about, "is_new": False})
        through = asked.through_sequence if plan is None else plan.through_sequence
        if through is None and not was_sent:
            return json_answer({"plan": None, "job": None, "is_new": False})
        command = QueueCompaction(
            session=session.id, through_sequence=through or 0, plan=None if plan is None else asdict(plan)
        )
        # What was sent is what counts for the key: a plan made later may be another one.
        return submitted(context.submit_cleaned(asked, command))

    @routes.get("/<text>/compactions")
    @needs("read")
    @takes("before", "limit")
    def _compactions(text: str) -> Response:
        limit = lists.limit()
        with parts.database.snapshot() as reading:
            session = find(reading, id_bytes(text), current().principal)
            found = compactions.listed(reading, session.id, before=lists.number("before"), limit=limit)
        last = found[-1][1]["through_sequence"] if found else None
        return lists.listed([_shape(listed, row) for listed, row in found], limit, before=last)

    return routes


def _plan(reading: Snapshot, session: DurableSession, asked: Compact) -> Plan | None:
    if asked.context_window is None:
        raise Invalid("context_window: how many tokens the model takes; or say through_sequence")
    if asked.current_tokens is not None and asked.current_tokens < 0:
        raise Invalid("current_tokens: how many tokens are used now, not negative")
    policy = Policy(context_window_tokens=asked.context_window, preserved_turns=asked.preserve_recent_turns)
    return planned(reading, session, policy, current_tokens=asked.current_tokens)


def _shape(listed: Listed, row: Any) -> dict[str, Any]:
    return {
        "through_sequence": row["through_sequence"],
        "digest": row["sha256"].hex(),
        "made_by": row["made_by"],
        "summary_sequence": row["summary_sequence"],
        "completed_at": time_text(row["completed_at"]),
        "job": job_shape(listed),
    }

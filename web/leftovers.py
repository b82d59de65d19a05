"""Clearing what a turn that was never published left in a durable session, before somebody writes there."""

from __future__ import annotations

from flask import request

from memory_core import limits
from memory_core.commands import durable_leftovers
from memory_core.commands.durable_leftovers import DropStaged
from memory_core.errors import Conflict, NotFound
from memory_core.store import durable_sessions
from web.auth import current
from web.parts import Parts


def clear(parts: Parts, session_id: bytes, lease_hash: bytes) -> None:
    """Have all but one command's worth of it deleted, by commands of their own: how many those are is no part of what was asked, so
    they are not under the caller's key. Nothing is done where that key was sent before: what is staged may be of that request.
    Who may not write there is told so by what was asked."""
    with parts.database.snapshot() as reading:
        session = durable_sessions.one(reading, session_id)
        if session is None or not durable_leftovers.is_much(reading, session):
            return
        if parts.context(current(), request.environ).was_sent(reading):
            return
    context = parts.context(current(), {})
    try:
        for _ in range(limits.DELETED_SLICES_PER_REQUEST):
            if not context.submit(DropStaged(session=session_id, lease_hash=lease_hash)).get("left"):
                return
    except (NotFound, Conflict):
        return

"""Deleting a durable session: hidden at once, its rows deleted in slices that no writer waits for."""

from __future__ import annotations

from dataclasses import dataclass

from memory_core import limits
from memory_core.clock import rfc3339
from memory_core.commands import Answer, command
from memory_core.commands.durable_lease import find, refusing
from memory_core.commands.pages import DeletePage, delete_page
from memory_core.domain.command import Refusal
from memory_core.errors import NotFound, SessionBusy
from memory_core.ids import id_text
from memory_core.store import (
    audit,
    durable_sessions,
    observations,
    pages,
    projects,
    session_events,
    session_jobs,
    sessions,
)
from memory_core.store.transaction import Reading, Transaction


@dataclass(frozen=True, kw_only=True)
class DeleteSession:
    """The session goes, with its events, its journal, its jobs and what hooks told of it. Knowledge stays, and so does its page
    unless `with_pages`."""

    session: bytes
    with_pages: bool = False


@dataclass(frozen=True, kw_only=True)
class DropDeleted:
    """The next slice of a session that is being deleted."""

    session: bytes


@command(DeleteSession, name="delete_durable_session")
@refusing
def delete(body: DeleteSession, tx: Transaction) -> Answer | Refusal:
    """Answer: `{"deleted", "left"}`: whether rows are left, which `DropDeleted` takes away. Refused under a live lease, of a
    session's holder or of a worker."""
    session = find(tx, body.session, tx.principal)
    until = busy_until(tx, session.id, session.lease_until, tx.now)
    if until is not None:
        raise SessionBusy(
            f"it is worked on, at most until {rfc3339(until)}; then delete it",
            detail={"lease_until": rfc3339(until)},
        )
    page = page_of(tx, session.id) if body.with_pages else None
    if page is not None:
        answer = delete_page(page, tx)
        if isinstance(answer, Refusal):
            return answer
    durable_sessions.hide(tx, session.id)
    session_jobs.delete_jobs(tx, session.id)
    audit.record(
        tx,
        "durable_session_deleted",
        project_id=session.project_id,
        detail={"session": id_text(session.id), "events": session.last_sequence},
    )
    return {"deleted": True, "left": drop_slice(tx, session.id)}


@command(DropDeleted, name="drop_deleted_session")
@refusing
def drop(body: DropDeleted, tx: Transaction) -> Answer | Refusal:
    """Answer: `{"deleted", "left"}`; of one that is gone already, that nothing is left."""
    if not durable_sessions.is_hidden(tx, body.session):
        if durable_sessions.one(tx, body.session) is not None:
            raise NotFound("there is no such session that is being deleted")
        return {"deleted": True, "left": False}
    return {"deleted": True, "left": drop_slice(tx, body.session)}


def busy_until(read: Reading, session_id: bytes, lease_until: int | None, now: int) -> int | None:
    """Until when the session may not be deleted, UTC microseconds; None where it may."""
    worker = session_jobs.worker_lease(read, session_id, now)
    if lease_until is not None and lease_until > now:
        return max(lease_until, worker or 0)
    return worker


def page_of(read: Reading, session_id: bytes) -> DeletePage | None:
    """How to delete the session's page; None where there is none."""
    session = sessions.one(read, session_id)
    page = (
        None if session is None or session["page_id"] is None else pages.page_by_id(read, session["page_id"])
    )
    project = None if page is None else projects.by_id(read, page.project_id)
    if page is None or project is None:
        return None
    return DeletePage(workspace=project["workspace"], project=project["name"], path=page.path)


def drop_slice(tx: Transaction, session_id: bytes) -> bool:
    """Delete a bounded part of a hidden session, and the session itself behind the last one; whether anything is left."""
    left = limits.DELETED_ROWS_PER_SLICE
    left -= session_events.drop_last(tx, session_id, limit=left, max_bytes=limits.DELETED_BYTES_PER_SLICE)
    if left == limits.DELETED_ROWS_PER_SLICE:
        # Their full text goes with them, which costs several times an event.
        left -= observations.drop_some(tx, session_id, limits.DELETED_OBSERVATIONS_PER_SLICE)
    if left < limits.DELETED_ROWS_PER_SLICE:
        return True
    sessions.delete(tx, session_id)
    return False

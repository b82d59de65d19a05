"""Durable sessions of another program, brought in with the ids and times that they have there.

Events come in slices past the session's head, where nobody sees them, and one small command publishes all of them. While a session
comes in it is held by its import, so that nobody works on a part of it; an import that died is gone on with by the next one.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Final

from memory_core import limits
from memory_core.commands import Answer, command, durable_leftovers
from memory_core.commands.durable_deletion import drop_slice
from memory_core.commands.durable_lease import find, lease_end, refusing
from memory_core.commands.scopes import ScopeRequest, ensure, resolve
from memory_core.commands.sessions import finalise
from memory_core.domain import transcript_digest
from memory_core.domain.command import Refusal
from memory_core.domain.directory import Directory
from memory_core.domain.durable_session import (
    DurableSession,
    Origin,
    check_model_reference,
    check_title,
)
from memory_core.domain.json_fields import json_text
from memory_core.errors import Conflict, Invalid, NotFound
from memory_core.ids import id_text
from memory_core.store import durable_sessions, imports, session_events, session_jobs, sessions
from memory_core.store.audit import record
from memory_core.store.imports import SESSION
from memory_core.store.transaction import Reading, Transaction

#: The program that sessions and knowledge come from, and the agent of its sessions.
SOURCE: Final = "emelex"
_ENDED: Final = "imported"
_MOMENT_MAX: Final = 2**62


@dataclass(frozen=True, kw_only=True)
class ImportSession:
    """Begin, or go on with, a session of `last_sequence` events.

    `again`: also one that was deleted here. `restart`: what is staged is not of this import, and goes.
    """

    session: bytes
    directory: Directory
    last_sequence: int
    started_at: int
    updated_at: int
    title: str | None = None
    model_reference: str | None = None
    workspace: str | None = None
    project: str | None = None
    again: bool = False
    restart: bool = False


@dataclass(frozen=True, kw_only=True)
class ImportSnapshot:
    session: bytes
    schema_version: int
    config: Any
    authority: Any
    created_at: int
    updated_at: int


@dataclass(frozen=True, kw_only=True)
class PublishImport:
    """All of its events are staged: from now on the session is there. `substance`: how many of the new ones somebody said or did."""

    session: bytes
    last_sequence: int
    substance: int
    last_event_at: int


@dataclass(frozen=True, kw_only=True)
class AbandonImport:
    """Something of it was refused: what is here of it goes, unless it was here before."""

    session: bytes


# --- the session -----------------------------------------------------------------------------------


@command(ImportSession, name="import_session")
@refusing
def begin(body: ImportSession, tx: Transaction) -> Answer | Refusal:
    """Answer: `{"state", "staged", "last_event"}`: `there` (all of it is), `deleted` (here, since), `coming` with how many events are
    staged or published, and the id of the last of them. `Conflict` where the id is taken, or the session went on here."""
    title, model = _checked(body)
    known = imports.one(tx, SOURCE, SESSION, body.session)
    row = imports.session(tx, body.session)
    is_here = row is not None and row["durable_id"] is not None and row["deleted_at"] is None
    if row is not None and (row["owner"] != tx.principal or (known is None and row["deleted_at"] is None)):
        raise Conflict(f"the id {id_text(body.session)} is that of another session here")
    if not is_here:
        if known is not None and known["finished_at"] is not None and not body.again:
            return {"state": "deleted", "staged": 0, "last_event": None}
        if row is not None:
            raise Conflict(
                "it was deleted here and its rows are still going; run memoryd maintain, then import again"
            )
    if not is_here:
        _add(tx, body, title, model)
    session = find(tx, body.session, tx.principal)
    if is_here and known is not None and known["finished_at"] is not None:
        if body.last_sequence <= known["through"]:
            return {"state": "there", "staged": known["through"], "last_event": None}
        if session.last_sequence != known["through"] or durable_sessions.has_open_turn(tx, session.id):
            raise Conflict(
                "the session went on here since it was imported; what is new there is not taken over"
            )
    _check_free(session, tx)
    if body.restart:
        durable_leftovers.drop(tx, session)
    imports.begin(tx, SOURCE, SESSION, session.id)
    imports.hold(tx, session.id, lease_of(session.id), lease_end(tx))
    count = staged(tx, session)
    last = imports.event_at(tx, session.id, count)
    return {"state": "coming", "staged": count, "last_event": None if last is None else id_text(last["id"])}


@command(ImportSnapshot, name="import_session_snapshot")
@refusing
def take_snapshot(body: ImportSnapshot, tx: Transaction) -> Answer | Refusal:
    """Answer: `{"taken": true}`."""
    session = coming(tx, body.session)
    if body.schema_version < 1:
        raise Invalid("schema_version: a whole number from 1")
    parts = {"config_json": json_text(body.config), "authority_json": json_text(body.authority)}
    for name, text in parts.items():
        if len(text.encode()) > limits.SNAPSHOT_PART_MAX_BYTES:
            raise Invalid(f"{name}: at most {limits.SNAPSHOT_PART_MAX_BYTES} bytes")
    imports.add_snapshot(
        tx,
        session_id=session.id,
        revision=1,
        schema_version=body.schema_version,
        **parts,
        created_at=moment("created_at", body.created_at),
        updated_at=moment("updated_at", body.updated_at),
    )
    return {"taken": True}


@command(PublishImport, name="publish_imported_session")
@refusing
def publish(body: PublishImport, tx: Transaction) -> Answer | Refusal:
    """Answer: `{"last_sequence"}`. `Conflict` with `staged` while events are missing."""
    known = imports.one(tx, SOURCE, SESSION, body.session)
    if known is not None and known["finished_at"] is not None and known["through"] == body.last_sequence:
        return {"last_sequence": body.last_sequence}
    session = coming(tx, body.session)
    before = staged(tx, session)
    last = session_events.at(tx, session.id, before)
    if before != body.last_sequence:
        raise Conflict(f"of this session {before} events are here; send the rest", detail={"staged": before})
    if last is not None and last.turn_index + 1 != last.turn_size:
        raise Invalid("the last event does not end its turn")
    imports.publish(
        tx,
        session.id,
        last_sequence=before,
        digest=session.digest if last is None else last.digest,
        substance=max(0, min(body.substance, before)),
        last_at=moment("last_event_at", body.last_event_at),
    )
    imports.finish(tx, SOURCE, SESSION, session.id, before)
    finalise(tx, session.id, leaves_handoff=False)
    record(
        tx,
        "import_session",
        project_id=session.project_id,
        detail={"session": id_text(session.id), "events": before},
    )
    return {"last_sequence": before}


@command(AbandonImport, name="abandon_import")
@refusing
def abandon(body: AbandonImport, tx: Transaction) -> Answer | Refusal:
    """Answer: `{"abandoned": true, "left"}`: whether rows are left, which the next maintenance takes away."""
    session = coming(tx, body.session)
    if session.last_sequence:
        imports.finish(tx, SOURCE, SESSION, session.id, session.last_sequence)
        durable_sessions.clear_lease(tx, session.id)
        return {"abandoned": True, "left": False}
    durable_sessions.hide(tx, session.id)
    session_jobs.delete_jobs(tx, session.id)
    imports.forget(tx, SOURCE, SESSION, session.id)
    # The session itself goes behind its last slice.
    return {"abandoned": True, "left": drop_slice(tx, session.id) and drop_slice(tx, session.id)}


def lease_of(session_id: bytes) -> bytes:
    """What holds a session while it comes in: the hash of no token, so no client can show one for it."""
    return hashlib.sha256(b"memoryd/import\0" + SOURCE.encode() + b"\0" + session_id).digest()


# --- its parts -------------------------------------------------------------------------------------


def _checked(body: ImportSession) -> tuple[str | None, str | None]:
    body.directory.check()
    if body.last_sequence < 0:
        raise Invalid("last_sequence: a whole number from 0")
    for name in ("started_at", "updated_at"):
        moment(name, getattr(body, name))
    title = None if body.title is None else check_title(body.title)
    return title, None if body.model_reference is None else check_model_reference(body.model_reference)


def _add(tx: Transaction, body: ImportSession, title: str | None, model: str | None) -> None:
    scope = resolve(tx, ScopeRequest(workspace=body.workspace, project=body.project, cwd=body.directory.path))
    sessions.add(
        tx,
        id=body.session,
        project_id=ensure(tx, scope),
        owner=tx.principal,
        token_scope=tx.token_scope,
        agent=SOURCE,
        vendor_key=id_text(body.session),
        cwd=body.directory.path,
        model=model,
        title=title,
        started_at=body.started_at,
        last_event_at=body.updated_at,
        # It is over as far as anybody here knows; the first turn that is written opens it.
        ended_at=body.updated_at,
        end_reason=_ENDED,
        observation_count=0,
        substance_count=0,
        finalised_count=None,
        refinalise_at=None,
        page_id=None,
    )
    durable_sessions.add(
        tx,
        session_id=body.session,
        origin=Origin.CLIENT.value,
        host=body.directory.host,
        device=body.directory.device,
        inode=body.directory.inode,
        path=body.directory.path,
        model_reference=model,
        lease_hash=None,
        lease_until=None,
        has_replayed=0,
        last_sequence=0,
        digest=transcript_digest.start(body.session),
        closed_at=None,
        deleted_at=None,
        # Retention counts from the import.
        updated_at=tx.now,
    )


def _check_free(session: DurableSession, tx: Transaction) -> None:
    if session.lease_hash != lease_of(session.id):
        session.check_free(tx.now)


def coming(tx: Transaction, session_id: bytes) -> DurableSession:
    """The session, while it comes in, for the principal at hand. Raises `NotFound`, `SessionBusy`."""
    session = find(tx, session_id, tx.principal)
    known = imports.one(tx, SOURCE, SESSION, session_id)
    if known is None or known["finished_at"] is not None or known["principal"] != tx.principal:
        raise NotFound("no import of that session is under way; begin it first")
    _check_free(session, tx)
    return session


def staged(read: Reading, session: DurableSession) -> int:
    """How many of its events are here, published or not."""
    return imports.last_sequence(read, session.id)


def moment(name: str, at: int) -> int:
    """A point in time that a column takes. Raises `Invalid`."""
    if not 0 <= at < _MOMENT_MAX:
        raise Invalid(f"{name}: microseconds since 1970")
    return at

"""Durable sessions: beginning one, taking and giving back its lease, saying that it was read, its title, its end."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from memory_core import limits
from memory_core.clock import rfc3339
from memory_core.commands import Answer, command, durable_leftovers
from memory_core.commands.distillation import queue_distillation
from memory_core.commands.durable_lease import find, held, lease_end, refusing
from memory_core.commands.scopes import ScopeRequest, ensure, resolve
from memory_core.commands.sessions import finalise
from memory_core.domain import transcript_digest
from memory_core.domain.command import Refusal
from memory_core.domain.directory import Directory, DirectoryId
from memory_core.domain.durable_session import (
    DurableSession,
    Origin,
    check_model_reference,
    check_title,
)
from memory_core.errors import Conflict, Invalid, StaleReplay
from memory_core.ids import id_text
from memory_core.store import durable_sessions, sessions
from memory_core.store.transaction import Transaction

_AGENT = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}", re.ASCII)
#: The agent of a session whose client has no name.
DEFAULT_AGENT = "durable"


@dataclass(frozen=True, kw_only=True)
class StartSession:
    """A new session without events, in a directory; nobody holds it."""

    directory: Directory
    title: str | None = None
    agent: str = DEFAULT_AGENT
    model_reference: str | None = None
    workspace: str | None = None
    project: str | None = None


@dataclass(frozen=True, kw_only=True)
class ClaimSession:
    """Hold the session from now on. `lease_hash` is the SHA-256 of the token that the claimant will show."""

    session: bytes
    lease_hash: bytes
    directory: Directory


@dataclass(frozen=True, kw_only=True)
class RenewLease:
    session: bytes
    lease_hash: bytes
    directory: DirectoryId


@dataclass(frozen=True, kw_only=True)
class ReleaseLease:
    session: bytes
    lease_hash: bytes


@dataclass(frozen=True, kw_only=True)
class SayReplayed:
    """The holder has read the session up to there, and found that digest."""

    session: bytes
    lease_hash: bytes
    directory: DirectoryId
    last_sequence: int
    digest: bytes


@dataclass(frozen=True, kw_only=True)
class SetTitle:
    """By the holder, with its lease and directory; by anybody else only while nobody holds it."""

    session: bytes
    title: str
    lease_hash: bytes | None = None
    directory: DirectoryId | None = None


@dataclass(frozen=True, kw_only=True)
class CloseSession:
    """The work is done: the lease goes back, and knowledge is to be drawn from the session."""

    session: bytes
    lease_hash: bytes
    directory: DirectoryId


@command(StartSession, name="start_durable_session")
@refusing
def start(body: StartSession, tx: Transaction) -> Answer | Refusal:
    """Answer: `{"id", "project", "workspace", "last_sequence"}`."""
    body.directory.check()
    title = None if body.title is None else check_title(body.title)
    model = None if body.model_reference is None else check_model_reference(body.model_reference)
    if not _AGENT.fullmatch(body.agent):
        raise Invalid("agent: up to 64 characters of a-z 0-9 . _ -")
    scope = resolve(tx, ScopeRequest(workspace=body.workspace, project=body.project, cwd=body.directory.path))
    project_id = ensure(tx, scope)
    session_id = tx.new_id()
    sessions.add(
        tx,
        id=session_id,
        project_id=project_id,
        owner=tx.principal,
        token_scope=tx.token_scope,
        agent=body.agent,
        vendor_key=id_text(session_id),
        cwd=body.directory.path,
        model=model,
        title=title,
        started_at=tx.now,
        last_event_at=tx.now,
        ended_at=None,
        end_reason=None,
        observation_count=0,
        substance_count=0,
        finalised_count=None,
        refinalise_at=None,
        page_id=None,
    )
    durable_sessions.add(
        tx,
        session_id=session_id,
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
        digest=transcript_digest.start(session_id),
        closed_at=None,
        deleted_at=None,
        updated_at=tx.now,
    )
    return {
        "id": id_text(session_id),
        "project": scope.project,
        "workspace": scope.workspace,
        "last_sequence": 0,
    }


@command(ClaimSession, name="claim_durable_session")
@refusing
def claim(body: ClaimSession, tx: Transaction) -> Answer | Refusal:
    """Answer: `{"lease_until", "lease_seconds", "last_sequence", "must_replay", "has_journal"}`."""
    body.directory.check()
    session = find(tx, body.session, tx.principal)
    session.check_client_writes()
    session.check_directory(body.directory)
    session.check_free(tx.now)
    until = lease_end(tx)
    is_empty = session.last_sequence == 0
    has_journal = durable_sessions.has_open_turn(tx, session.id)
    # A turn that its writer never finished is no part of what the next one goes on from. Of a long one the rest goes before the next write.
    durable_leftovers.drop_slice(tx, session)
    durable_sessions.claim(
        tx,
        session.id,
        lease_hash=body.lease_hash,
        until=until,
        has_replayed=is_empty,
        path=body.directory.path,
    )
    # Whoever only looks and lets go again leaves a closed session closed: the first turn opens it.
    durable_sessions.visited(tx, session.id)
    return _lease(until) | {
        "last_sequence": session.last_sequence,
        "must_replay": not is_empty,
        "has_journal": has_journal,
    }


@command(RenewLease, name="renew_durable_lease")
@refusing
def renew(body: RenewLease, tx: Transaction) -> Answer | Refusal:
    """Also after its end, while nobody else has claimed. Answer: `{"lease_until", "lease_seconds"}`."""
    session = _of_lease(tx, body.session, body.lease_hash)
    session.check_directory(body.directory)
    until = lease_end(tx)
    durable_sessions.extend(tx, session.id, until)
    return _lease(until)


@command(ReleaseLease, name="release_durable_lease")
@refusing
def release(body: ReleaseLease, tx: Transaction) -> Answer | Refusal:
    """Answer: `{"released": true}`."""
    session = _of_lease(tx, body.session, body.lease_hash)
    durable_leftovers.drop_slice(tx, session)
    durable_sessions.clear_lease(tx, session.id)
    return {"released": True}


@command(SayReplayed, name="say_session_replayed")
@refusing
def say_replayed(body: SayReplayed, tx: Transaction) -> Answer | Refusal:
    """Answer: `{"last_sequence"}`. Stale where the session went on since, or its digest is another."""
    session = held(tx, body.session, body.lease_hash, body.directory)
    session.check_head(body.last_sequence)
    if body.digest != session.digest:
        raise StaleReplay(detail={"expected": body.last_sequence, "actual": session.last_sequence})
    durable_sessions.replayed(tx, session.id)
    return {"last_sequence": session.last_sequence}


@command(SetTitle, name="set_durable_title")
@refusing
def set_title(body: SetTitle, tx: Transaction) -> Answer | Refusal:
    """Answer: `{"title"}`. Without a lease a claim that is over goes."""
    title = check_title(body.title)
    if body.lease_hash is not None:
        if body.directory is None:
            raise Invalid("directory: needed with a lease")
        session = held(tx, body.session, body.lease_hash, body.directory)
    else:
        session = find(tx, body.session, tx.principal)
        session.check_free(tx.now)
        durable_sessions.clear_lease(tx, session.id)
    durable_sessions.set_title(tx, session.id, title)
    durable_sessions.touch(tx, session.id)
    return {"title": title}


@command(CloseSession, name="close_durable_session")
@refusing
def close(body: CloseSession, tx: Transaction) -> Answer | Refusal:
    """Answer: `{"closed": true, "job"}`: the job that will draw knowledge from it; None where nothing is to be drawn."""
    session = held(tx, body.session, body.lease_hash, body.directory)
    if durable_sessions.has_open_turn(tx, session.id):
        raise Conflict("a turn of this session is not finished; checkpoint or recover it, then close")
    durable_leftovers.drop_slice(tx, session)
    job = queue_distillation(tx, session)
    durable_sessions.close(tx, session.id)
    durable_sessions.seen(tx, session.id, ended_at=tx.now, reason="closed")
    finalise(tx, session.id)
    return {"closed": True, "job": None if job is None else id_text(job)}


def _of_lease(tx: Transaction, session_id: bytes, lease_hash: bytes) -> DurableSession:
    session = find(tx, session_id, tx.principal)
    session.check_own(lease_hash)
    return session


def _lease(until: int) -> dict[str, Any]:
    return {"lease_until": rfc3339(until), "lease_seconds": limits.SESSION_LEASE_SECONDS}

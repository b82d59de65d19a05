"""What a turn that was staged and never published left past its session's head. Nobody sees it; whoever writes there next has it
deleted first, in slices that no writer waits for."""

from __future__ import annotations

from dataclasses import dataclass

from memory_core import limits
from memory_core.commands import Answer, command
from memory_core.commands.durable_lease import find, refusing
from memory_core.domain.command import Refusal
from memory_core.domain.durable_session import DurableSession
from memory_core.errors import Conflict
from memory_core.store import session_events
from memory_core.store.transaction import Reading, Transaction


@dataclass(frozen=True, kw_only=True)
class DropStaged:
    """The next slice of what is staged in a session that nobody holds, or whose lease this is."""

    session: bytes
    lease_hash: bytes | None = None


@command(DropStaged, name="drop_staged_events")
@refusing
def drop_staged(body: DropStaged, tx: Transaction) -> Answer | Refusal:
    """Answer: `{"left"}`: whether anything is left."""
    session = find(tx, body.session, tx.principal)
    if body.lease_hash is None or body.lease_hash != session.lease_hash:
        session.check_free(tx.now)
    return {"left": drop_slice(tx, session)}


def is_much(read: Reading, session: DurableSession) -> bool:
    """Whether more is staged than one command may delete."""
    return session_events.has_more_past(
        read,
        session.id,
        session.last_sequence,
        limit=limits.DELETED_ROWS_PER_SLICE,
        max_bytes=limits.DELETED_BYTES_PER_SLICE,
    )


def drop_slice(tx: Transaction, session: DurableSession) -> bool:
    """Delete as much of it as one command may, its end first; whether anything is left."""
    return session_events.drop_past(
        tx,
        session.id,
        session.last_sequence,
        limit=limits.DELETED_ROWS_PER_SLICE,
        max_bytes=limits.DELETED_BYTES_PER_SLICE,
    )


def drop(tx: Transaction, session: DurableSession) -> None:
    """Delete all of it. Raises `Conflict`, before anything is written, where that is more than one command may delete."""
    if is_much(tx, session):
        raise Conflict(
            "what an unfinished turn left in this session is still being cleared away; send the same again under a new key"
        )
    drop_slice(tx, session)

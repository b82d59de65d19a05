"""Who may do what to a durable session: the checks that every command of one begins with."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from memory_core.commands import Answer
from memory_core.domain.command import Refusal
from memory_core.domain.directory import DirectoryId
from memory_core.domain.durable_session import LEASE_US, DurableSession
from memory_core.errors import CoreError, NotFound, StorageFailed, StorageStopped
from memory_core.store import durable_sessions
from memory_core.store.transaction import Reading, Transaction

C = TypeVar("C")


def refusing(
    apply: Callable[[C, Transaction], Answer | Refusal],
) -> Callable[[C, Transaction], Answer | Refusal]:
    """Decorator of an `apply`, under `@command`: a rule that is found broken before the first write is the command's refusal."""

    @wraps(apply)
    def applied(body: C, tx: Transaction) -> Answer | Refusal:
        try:
            return apply(body, tx)
        except (StorageStopped, StorageFailed):
            raise
        except CoreError as error:
            if tx.wrote:
                raise
            return Refusal.of(error)

    return applied


def find(read: Reading, session_id: bytes, principal: str) -> DurableSession:
    """The session, as far as that principal may know of it. Raises `NotFound`."""
    session = durable_sessions.one(read, session_id)
    if session is None or session.owner not in (None, principal):
        raise NotFound("there is no such durable session")
    return session


def held(
    tx: Transaction,
    session_id: bytes,
    lease_hash: bytes,
    directory: DirectoryId,
    *,
    expected_last_sequence: int | None = None,
    must_have_replayed: bool = False,
) -> DurableSession:
    """The session, which the lease holds now, in its directory.

    With `must_have_replayed` the lease has read it; with `expected_last_sequence` it ends there. Raises, in this order: `NotFound`,
    `Conflict` (hooks write it), `ReplayRequired`, `WorkspaceMismatch`, `StaleSessionLease`, `StaleReplay`.
    """
    session = find(tx, session_id, tx.principal)
    session.check_client_writes()
    if must_have_replayed:
        session.check_replayed(lease_hash)
    session.check_directory(directory)
    session.check_lease(lease_hash, tx.now)
    if expected_last_sequence is not None:
        session.check_head(expected_last_sequence)
    return session


def lease_end(tx: Transaction) -> int:
    """Until when a lease lasts that is given or extended now."""
    return tx.now + LEASE_US

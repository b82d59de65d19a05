"""Durable sessions: who may work on one, and when. Drawn in `docs/durable-sessions.md`.

A session is worked on by whoever holds its lease, in the directory that it began in, after having read what there is. Every rule
here raises; times are UTC microseconds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from memory_core import limits
from memory_core.clock import MICROSECONDS, rfc3339
from memory_core.domain.directory import Directory, DirectoryId
from memory_core.errors import (
    Conflict,
    Invalid,
    ReplayRequired,
    SessionBusy,
    StaleReplay,
    StaleSessionLease,
    WorkspaceMismatch,
)

LEASE_US: Final = round(limits.SESSION_LEASE_SECONDS * MICROSECONDS)


class Origin(StrEnum):
    """Who writes the events."""

    #: The program that works, with a lease.
    CLIENT = "client"
    #: memoryd itself, from what hooks told.
    HOOKS = "hooks"


@dataclass(frozen=True, kw_only=True)
class DurableSession:
    """A session's state: its head (`last_sequence`, `digest`), its directory, and its lease (both None: nobody's)."""

    id: bytes
    project_id: bytes
    owner: str | None
    origin: Origin
    directory: Directory | None
    title: str | None
    model_reference: str | None
    lease_hash: bytes | None
    lease_until: int | None
    has_replayed: bool
    last_sequence: int
    digest: bytes
    closed_at: int | None
    updated_at: int

    def at(self, *, last_sequence: int, digest: bytes) -> DurableSession:
        """The session after more was written."""
        return replace(self, last_sequence=last_sequence, digest=digest)

    def is_held(self, now: int) -> bool:
        """Whether somebody has it now."""
        return self.lease_until is not None and self.lease_until > now

    def check_directory(self, told: DirectoryId) -> None:
        """Raises `WorkspaceMismatch` unless that is the session's directory."""
        if self.directory is None or self.directory.id != told.id:
            raise WorkspaceMismatch

    def check_free(self, now: int) -> None:
        """Raises `SessionBusy` while somebody holds it."""
        if self.lease_until is not None and self.lease_until > now:
            until = rfc3339(self.lease_until)
            raise SessionBusy(
                f"somebody else works on this session, at most until {until}; then try again",
                detail={"lease_until": until},
            )

    def check_lease(self, lease_hash: bytes, now: int) -> None:
        """Raises `StaleSessionLease` unless that lease holds it now."""
        self.check_own(lease_hash)
        if not self.is_held(now):
            raise StaleSessionLease

    def check_own(self, lease_hash: bytes) -> None:
        """Raises `StaleSessionLease` unless the lease is the session's last one. It may be over: as long as nobody else
        claimed and nobody cleared it, it can be renewed."""
        if self.lease_hash != lease_hash:
            raise StaleSessionLease

    def check_replayed(self, lease_hash: bytes) -> None:
        """Raises `ReplayRequired` where that lease is the session's and has not read it."""
        if self.lease_hash == lease_hash and not self.has_replayed:
            raise ReplayRequired

    def check_head(self, expected: int) -> None:
        """Raises `StaleReplay` unless the session ends where the caller thinks it does."""
        if self.last_sequence != expected:
            raise StaleReplay(detail={"expected": expected, "actual": self.last_sequence})

    def check_client_writes(self) -> None:
        """Raises `Conflict` for a session that hooks write."""
        if self.origin is not Origin.CLIENT:
            raise Conflict(
                "this session is written from what hooks tell, and nobody else writes it; at its end knowledge is drawn from it by itself"
            )


def check_title(title: str) -> str:
    """The title as it is kept. Raises `Invalid`."""
    kept = title.strip()
    if not kept or len(kept.encode("utf-8", "replace")) > limits.SESSION_TITLE_MAX_BYTES:
        raise Invalid(f"title: 1 to {limits.SESSION_TITLE_MAX_BYTES} bytes (UTF-8)")
    return kept


def check_model_reference(reference: str) -> str:
    """A model's name as it is kept. Raises `Invalid`."""
    kept = reference.strip()
    if not kept or len(kept.encode("utf-8", "replace")) > limits.MODEL_REFERENCE_MAX_BYTES:
        raise Invalid(f"model_reference: 1 to {limits.MODEL_REFERENCE_MAX_BYTES} bytes (UTF-8)")
    return kept

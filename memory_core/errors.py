"""The one tree of errors. Each edge (HTTP, MCP, command line, writer) translates it once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class CoreError(Exception):
    """Something went wrong."""

    #: A stable machine name, sent to clients beside the sentence.
    code = "internal"

    def __init__(self, message: str | None = None, *, detail: Mapping[str, Any] | None = None) -> None:
        super().__init__(message or (self.__doc__ or "").strip().splitlines()[0])
        #: JSON that a program needs to go on, sent beside the sentence; no text of anybody's.
        self.detail: Mapping[str, Any] = detail or {}


class Invalid(CoreError):
    """The input is not acceptable as it is."""

    code = "invalid"


class NotFound(CoreError):
    """There is no such thing in this scope."""

    code = "not_found"


class Conflict(CoreError):
    """What is stored does not agree with the request."""

    code = "conflict"


class ReusedId(Conflict):
    """This id was used with another body; use a new id for a new event."""


class StaleLease(Conflict):
    """The job is no longer that of this claim: stop, and forget the result."""

    code = "stale_lease"


class SessionBusy(Conflict):
    """Somebody else works on this session; `lease_until` says how long at most."""

    code = "session_busy"


class StaleSessionLease(StaleLease):
    """The session is no longer held by this lease: claim it again, and replay before you go on."""


class ReplayRequired(Conflict):
    """This lease has not replayed the session yet: read `replay`, then say `replayed`."""

    code = "replay_required"


class StaleReplay(Conflict):
    """The session has gone on since it was replayed: replay it again."""

    code = "stale_replay"


class WorkspaceMismatch(Conflict):
    """This is not the directory that the session works in: host, device and inode must be the same."""

    code = "workspace_mismatch"


class SnapshotMismatch(Conflict):
    """The session was begun with another configuration or authority; it goes on with that one only."""

    code = "snapshot_mismatch"


class UncertainCalls(Conflict):
    """Tool calls were started and nobody knows whether they had their effect; say that you accept that."""

    code = "uncertain_calls"


class ReplayTooLarge(CoreError):
    """What is to be replayed is more than one answer holds; compact more of the session."""

    code = "replay_too_large"


class TooLarge(CoreError):
    """More at once than is kept."""

    code = "too_large"


class Corrupt(CoreError):
    """What is stored breaks its own rules: it was changed from outside, or by a fault of ours."""

    code = "corrupt"


class Forbidden(CoreError):
    """This token may not do that."""

    code = "forbidden"


class Unavailable(CoreError):
    """A part that is needed does not answer; nothing was kept."""

    code = "unavailable"

    def __init__(self, message: str | None = None, *, retry_after_seconds: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class OutcomeUnknown(CoreError):
    """It was sent but not answered: it may or may not take effect. Send the same id again."""

    code = "unknown"


class SchemaTooNew(CoreError):
    """The database was written by a newer memoryd."""

    code = "schema_too_new"


class NotAlone(CoreError):
    """Another writer owns this data directory."""

    code = "not_alone"


class StorageStopped(CoreError):
    """The database cannot take writes now (full disk, I/O error, memory, lock); nothing is lost, nothing is counted."""

    code = "storage_stopped"

    def __init__(
        self, message: str | None = None, *, must_reopen: bool = False, is_busy: bool = False
    ) -> None:
        super().__init__(message)
        #: Another connection holds a lock; the disk is well.
        self.is_busy = is_busy
        #: After a real I/O error in COMMIT the connection is not to be trusted any more.
        self.must_reopen = must_reopen


class StorageFailed(CoreError):
    """The database refused a statement (a constraint, a damaged page, a bug)."""

    code = "storage_failed"

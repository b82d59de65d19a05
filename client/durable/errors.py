"""What can go wrong in a durable session, for the program that runs it. What the server refuses keeps the server's class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memory_core import errors
from memory_core.errors import CoreError, Invalid


@dataclass(frozen=True, kw_only=True)
class UncertainCall:
    """A tool call that was started and whose end nobody saw."""

    call_id: str
    tool_name: str


class UncertainToolInvocations(errors.UncertainCalls):
    """Tool calls were started and nobody saw how they ended; look what they did, then recover and accept that."""

    def __init__(self, message: str | None = None, *, detail: Mapping[str, Any] | None = None) -> None:
        super().__init__(message, detail=detail)
        found: Sequence[Mapping[str, Any]] = self.detail.get("calls", ())
        self.calls = tuple(
            UncertainCall(call_id=str(call["call_id"]), tool_name=str(call["tool_name"])) for call in found
        )


class Poisoned(errors.Conflict):
    """A turn did not end as it should, and memory and journal may differ: resume the session, or recover it."""

    code = "poisoned"


class Closed(errors.Conflict):
    """This session object was closed or released; resume the session to go on."""

    code = "closed"


class InUse(errors.Conflict):
    """A turn of this session object is under way; a session runs one turn at a time."""

    code = "in_use"


class TurnFailed(CoreError):
    """The turn failed. That is journaled, and the session may be used again."""

    code = "turn_failed"


class ModelFailed(TurnFailed):
    """The model did not answer, or answered what cannot be kept."""

    code = "model_failed"


class TooManyRounds(TurnFailed):
    """The model still asked for tools in the last round that the session allows."""

    code = "too_many_rounds"


class HistoryFull(TurnFailed):
    """The history is as long as one may be: compact the session, let go of it until that is done, and open it again."""

    code = "history_full"


class TurnCancelled(TurnFailed):
    """The turn was cancelled. What its tools did until then is journaled."""

    code = "cancelled"


class ToolFailed(TurnFailed):
    """A tool ended the turn; a side effect may have happened."""

    code = "tool_failed"


class ListenerFailed(TurnFailed):
    """What listens to the turn's events raised an error, so the turn was ended."""

    code = "listener_failed"


class ListenerFailedAfterCommit(CoreError):
    """The turn is committed; only the listener failed on the event that says so. Nothing needs to be repeated."""

    code = "listener_failed_after_commit"

    def __init__(self, message: str, *, result: Any) -> None:
        super().__init__(message)
        #: What `run` would have returned.
        self.result = result


class LeaseLost(errors.StaleSessionLease):
    """The lease could not be renewed, so the turn was ended at once; resume the session."""


class DirectoryGone(errors.WorkspaceMismatch):
    """The session's directory is not there any more."""


class UnusableSchema(Invalid):
    """A tool's schema says something that is not checked here."""


#: The server's codes, and what is raised for them. The most special class of a code counts.
BY_CODE: Mapping[str, type[CoreError]] = {
    kind.code: kind
    for kind in (
        errors.Conflict,
        errors.Corrupt,
        errors.Forbidden,
        errors.Invalid,
        errors.NotFound,
        errors.ReplayRequired,
        errors.ReplayTooLarge,
        errors.SessionBusy,
        errors.SnapshotMismatch,
        errors.StaleReplay,
        errors.StaleSessionLease,
        errors.WorkspaceMismatch,
        UncertainToolInvocations,
    )
}

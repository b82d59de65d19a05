"""Asking whether a call may run: once for each call, and what is answered holds for that call alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from client.durable.errors import TurnFailed
from client.durable.tools import AllowOnce, ApprovalRequest, Deny, Tool
from memory_core import limits
from memory_core.domain.agent_message import ToolCall
from memory_core.errors import CoreError

if TYPE_CHECKING:
    from client.durable.turn import Turn

_NOBODY = "nobody is here to allow it"


class ApprovalFailed(TurnFailed):
    """Whether a call may run could not be asked."""

    code = "approval_failed"


@dataclass(frozen=True, kw_only=True)
class Decided:
    is_allowed: bool
    reason: str | None = None


def reason_of(tool: Tool, arguments: Mapping[str, Any]) -> str | None:
    """Why this call must be allowed, None where it need not be. Raises `ApprovalFailed` for a reason that cannot be shown."""
    try:
        reason = tool.reason_for(dict(arguments))
    except Exception as error:
        raise ApprovalFailed(
            f"{tool.name} could not say whether it must be allowed: {_named(error)}"
        ) from error
    if reason is None:
        return None
    if not isinstance(reason, str) or not reason.strip() or not reason.isprintable():
        raise ApprovalFailed(
            f"{tool.name}: the reason for asking must be one line of text without control characters"
        )
    if len(reason.encode("utf-8", "replace")) > limits.APPROVAL_TEXT_MAX_BYTES:
        raise ApprovalFailed(
            f"{tool.name}: the reason for asking is longer than {limits.APPROVAL_TEXT_MAX_BYTES} bytes"
        )
    return reason


def ask(turn: Turn, call: ToolCall, call_id: str, reason: str) -> Decided:
    """What somebody decides about one call; where nobody can be asked, no. Raises `ApprovalFailed`, `TurnCancelled`."""
    if turn.approve is None:
        return Decided(is_allowed=False, reason=_NOBODY)
    request = ApprovalRequest(
        call_id=call_id,
        tool_name=call.name,
        arguments=call.arguments,
        directory=turn.directory.path,
        reason=reason,
    )
    try:
        decision = turn.calls.approve(turn.approve, request, turn.cancellation)
    except CoreError:
        turn.cancellation.check()
        raise
    except Exception as error:
        raise ApprovalFailed(f"asking about {call.name} failed: {_named(error)}") from error
    if isinstance(decision, AllowOnce):
        return Decided(is_allowed=True)
    if isinstance(decision, Deny):
        return Decided(is_allowed=False, reason=_one_line(decision.reason))
    raise ApprovalFailed(
        f"whoever is asked answers AllowOnce() or Deny(reason), not {type(decision).__name__}"
    )


def _one_line(text: str) -> str | None:
    """A denial is never lost for how it is worded."""
    text = text.encode("utf-8", "replace").decode()
    line = "".join(character if character.isprintable() else " " for character in text).strip()
    cut = line.encode()[: limits.APPROVAL_TEXT_MAX_BYTES].decode("utf-8", "ignore")
    return cut or None


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:500]

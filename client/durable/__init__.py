"""Durable sessions for a program that runs an agent: stop it anywhere, resume it exactly. See `docs/durable-client.md`."""

from __future__ import annotations

from client.durable.agent import Agent
from client.durable.asynchronous import AsyncDurableAgentSession
from client.durable.errors import (
    Closed,
    DirectoryGone,
    HistoryFull,
    InUse,
    LeaseLost,
    ListenerFailed,
    ListenerFailedAfterCommit,
    ModelFailed,
    Poisoned,
    ToolFailed,
    TooManyRounds,
    TurnCancelled,
    TurnFailed,
    UncertainToolInvocations,
)
from client.durable.model import ModelReply, ModelRequest, ReasoningDelta, RequestedCall, TextDelta, Usage
from client.durable.recovery import recover
from client.durable.session import DurableAgentSession
from client.durable.tools import (
    AllowOnce,
    ApprovalRequest,
    Deny,
    FatalToolError,
    Tool,
    ToolContext,
    ToolError,
    ToolOutput,
)
from client.durable.turn import TurnResult
from memory_core.domain.agent_message import Message, Role
from memory_core.errors import (
    CoreError,
    Corrupt,
    ReplayRequired,
    SessionBusy,
    SnapshotMismatch,
    StaleReplay,
    StaleSessionLease,
    WorkspaceMismatch,
)

#: The server's name for it.
StaleLease = StaleSessionLease

__all__ = [
    "Agent",
    "AllowOnce",
    "ApprovalRequest",
    "AsyncDurableAgentSession",
    "Closed",
    "CoreError",
    "Corrupt",
    "Deny",
    "DirectoryGone",
    "DurableAgentSession",
    "FatalToolError",
    "HistoryFull",
    "InUse",
    "LeaseLost",
    "ListenerFailed",
    "ListenerFailedAfterCommit",
    "Message",
    "ModelFailed",
    "ModelReply",
    "ModelRequest",
    "Poisoned",
    "ReasoningDelta",
    "ReplayRequired",
    "RequestedCall",
    "Role",
    "SessionBusy",
    "SnapshotMismatch",
    "StaleLease",
    "StaleReplay",
    "StaleSessionLease",
    "TextDelta",
    "TooManyRounds",
    "Tool",
    "ToolContext",
    "ToolError",
    "ToolFailed",
    "ToolOutput",
    "TurnCancelled",
    "TurnFailed",
    "TurnResult",
    "UncertainToolInvocations",
    "Usage",
    "WorkspaceMismatch",
    "recover",
]

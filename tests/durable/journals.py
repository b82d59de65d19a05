"""Journals for tests: valid turns, batches and calls, which a test then changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memory_core.clock import FakeClock
from memory_core.domain import tool_steps
from memory_core.domain.agent_message import Message, Role, Text, ToolCall, said
from memory_core.domain.audit_event import ApprovalRequested, ApprovalResolved, ToolOutput
from memory_core.domain.directory import DirectoryId
from memory_core.domain.tool_journal import Journal
from memory_core.domain.tool_steps import Round
from memory_core.ids import IdSource, id_text

_IDS = IdSource(FakeClock())
HERE = DirectoryId(host="ada-laptop", device="2049", inode="131072")


def new_id() -> str:
    """A UUIDv7 as text."""
    return id_text(_IDS.new())


def call(name: str = "shell", **arguments: Any) -> ToolCall:
    return ToolCall(new_id(), name, arguments or {"command": "make test"})


def asks(*calls: ToolCall, text: str = "") -> Message:
    """The assistant calls tools."""
    return Message(role=Role.ASSISTANT, content=(Text(text),) if text else (), tool_calls=calls)


def prompt(text: str = "please run the tests") -> Message:
    return said(Role.USER, text)


def begun(message: Message | None = None) -> Journal:
    return tool_steps.begun(Journal(directory=HERE), new_id(), message or prompt())


def planned(*calls: ToolCall, journal: Journal | None = None, **of_round: Any) -> Journal:
    """A journal whose batch plans these calls (one, unless told otherwise)."""
    journal = journal or begun()
    turn = journal.open_turn
    values: dict[str, Any] = {"number": turn.checkpoint_count + 1, "starts_turn": not turn.checkpoint_count}
    return tool_steps.planned(
        journal, asks(*(calls or (call(),))), Round(turn_id=turn.turn_id, **values | of_round)
    )


def request(of: ToolCall, **overrides: Any) -> ApprovalRequested:
    values: dict[str, Any] = {
        "call_id": of.id,
        "tool_name": of.name,
        "arguments": of.arguments,
        "workspace_root": "/home/ada/uploader",
        "workspace_host": HERE.host,
        "workspace_device": HERE.device,
        "workspace_inode": HERE.inode,
        "reason": "runs a command",
    }
    return ApprovalRequested(**values | overrides)


def allow(of: ToolCall) -> ApprovalResolved:
    return ApprovalResolved(call_id=of.id, is_allowed=True)


def deny(of: ToolCall, reason: str | None = "not now") -> ApprovalResolved:
    return ApprovalResolved(call_id=of.id, is_allowed=False, reason=reason)


def fine(text: str = "3 passed") -> ToolOutput:
    return ToolOutput(text, is_error=False)


def wrong(text: str = "no such file") -> ToolOutput:
    return ToolOutput(text, is_error=True)


def done(journal: Journal, *calls: ToolCall, outputs: Sequence[ToolOutput] = ()) -> Journal:
    """Each call started, then completed."""
    for each in calls:
        journal = tool_steps.started(journal, each.id)
    for index, each in enumerate(calls):
        output = outputs[index] if outputs else fine()
        journal = tool_steps.completed(journal, each.id, output)
    return journal

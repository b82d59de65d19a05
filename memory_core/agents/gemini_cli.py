"""Gemini CLI: its hook payloads, read into events."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from memory_core.agents import AgentClient, agents
from memory_core.agents._payload import (
    Payload,
    as_payload,
    cwd_of,
    event_name,
    extension,
    folded,
    occurred_at,
    optional_text,
    prompt_of,
    session_key,
    text_field,
    text_of,
)
from memory_core.agents._tool import is_own_tool, speaker_of, title_of, tool_call
from memory_core.domain.event import EventKind, HookEvent, Outcome, ToolCall, changed

_KINDS = {
    folded(name): kind
    for name, kind in {
        "SessionStart": EventKind.SESSION_START,
        "BeforeAgent": EventKind.USER_PROMPT,
        "UserPromptSubmit": EventKind.USER_PROMPT,
        "BeforeTool": EventKind.PRE_TOOL_USE,
        "AfterTool": EventKind.POST_TOOL_USE,
        "PreCompress": EventKind.PRE_COMPACT,
        "Notification": EventKind.NOTIFICATION,
        "AfterAgent": EventKind.STOP,
        "SessionEnd": EventKind.SESSION_END,
    }.items()
}
_SHELL = "run_shell_command"
#: The line in which the shell tool tells the model how a command ended.
_EXIT_CODE = re.compile(r"^Exit Code: (-?\d{1,6})$", re.MULTILINE)


def read(payload: Mapping[str, Any], query: Mapping[str, str]) -> HookEvent:
    """One Gemini CLI hook payload as an event; `Invalid` without a session id.

    Events around the model (`BeforeModel`, …) keep no text: they repeat the whole conversation.
    """
    fields = as_payload(payload)
    source_event = event_name(fields, query)
    name = folded(source_event)
    kind = _KINDS.get(name, EventKind.OTHER)
    tool = _tool(fields, kind)
    body = _body(fields, kind)
    return HookEvent(
        client="gemini-cli",
        source_event=source_event or "other",
        kind=kind,
        session_key=session_key(fields, query),
        speaker=speaker_of(kind, tool, is_agent=kind is EventKind.STOP),
        cwd=cwd_of(fields, query),
        occurred_at=occurred_at(fields, query),
        title=title_of(fields, kind, tool, body) or name or "other",
        body=body,
        tool=tool,
        model=optional_text(fields, "model"),
        reason=optional_text(fields, "reason", "source", "trigger", "notification_type"),
        transcript_path=optional_text(fields, "transcript_path"),
        extension=extension(query),
    )


def _tool(fields: Payload, kind: EventKind) -> ToolCall | None:
    if kind is EventKind.PRE_TOOL_USE:
        return tool_call(fields, outcome=Outcome.UNKNOWN)
    if kind is not EventKind.POST_TOOL_USE:
        return None
    response = fields.get("tool_response")
    if not isinstance(response, dict):
        return tool_call(fields, outcome=Outcome.UNKNOWN, response=response)
    parts = cast("Payload", response)
    call = tool_call(fields, outcome=Outcome.UNKNOWN)
    said = text_field(parts, "llmContent", "returnDisplay") or text_of(parts.get("error"))
    result = None if is_own_tool(call.name) else said
    return changed(call, outcome=_outcome(call.name, parts, said), result=result)


def _outcome(tool: str, response: Payload, said: str) -> Outcome:
    """A failed command is no error of the shell tool, so there only the exit code in its text tells."""
    if response.get("error"):
        return Outcome.ERROR
    if tool != _SHELL:
        return Outcome.SUCCESS
    codes = _EXIT_CODE.findall(said)
    if not codes:
        return Outcome.UNKNOWN
    return Outcome.SUCCESS if int(codes[-1]) == 0 else Outcome.ERROR


def _body(fields: Payload, kind: EventKind) -> str:
    if kind is EventKind.USER_PROMPT:
        return prompt_of(fields, "prompt")
    if kind is EventKind.STOP:
        return text_field(fields, "prompt_response")
    return text_field(fields, "message") if kind is EventKind.NOTIFICATION else ""


GEMINI_CLI = agents.add("gemini-cli")(
    AgentClient(
        name="gemini-cli",
        title="Gemini CLI",
        aliases=("gemini",),
        hook_events=(
            "SessionStart",
            "BeforeAgent",
            "AfterTool",
            "PreCompress",
            "Notification",
            "AfterAgent",
            "SessionEnd",
        ),
        read=read,
        injects_at=frozenset((EventKind.SESSION_START, EventKind.USER_PROMPT)),
    )
)

"""Cursor (editor and `agent` command): its hook payloads, read into events."""

from __future__ import annotations

import json
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
)
from memory_core.agents._tool import speaker_of, title_of, tool_call
from memory_core.domain.event import EventKind, HookEvent, Outcome, ToolCall

_KINDS = {
    folded(name): kind
    for name, kind in {
        "sessionStart": EventKind.SESSION_START,
        "beforeSubmitPrompt": EventKind.USER_PROMPT,
        "userPromptSubmit": EventKind.USER_PROMPT,
        "preToolUse": EventKind.PRE_TOOL_USE,
        "beforeShellExecution": EventKind.PRE_TOOL_USE,
        "beforeMCPExecution": EventKind.PRE_TOOL_USE,
        "beforeReadFile": EventKind.PRE_TOOL_USE,
        "postToolUse": EventKind.POST_TOOL_USE,
        "postToolUseFailure": EventKind.POST_TOOL_USE,
        "afterShellExecution": EventKind.POST_TOOL_USE,
        "afterMCPExecution": EventKind.POST_TOOL_USE,
        "afterFileEdit": EventKind.POST_TOOL_USE,
        "preCompact": EventKind.PRE_COMPACT,
        # The stop itself says nothing of what the agent said; this one does.
        "afterAgentResponse": EventKind.STOP,
        "stop": EventKind.STOP,
        "sessionEnd": EventKind.SESSION_END,
    }.items()
}
_AGENT_SPEAKS = {folded(name) for name in ("afterAgentResponse", "stop", "subagentStop")}
#: Events that name no tool, and the tool that they speak of.
_TOOL_OF = {
    folded(name): tool
    for name, tool in {
        "beforeShellExecution": "Shell",
        "afterShellExecution": "Shell",
        "beforeReadFile": "Read",
        "afterFileEdit": "Edit",
    }.items()
}
#: One call's id may be two ids on two lines.
_LINE_BREAKS = re.compile(r"[\r\n]+")
_INNER_JSON_MAX_CHARS = 1_000_000


def read(payload: Mapping[str, Any], query: Mapping[str, str]) -> HookEvent:
    """One Cursor hook payload as an event; `Invalid` without a conversation id.

    `conversation_id` is the session; `session_id` is the same id, on its first and last event only.
    """
    fields = as_payload(payload)
    source_event = event_name(fields, query)
    name = folded(source_event)
    kind = _KINDS.get(name, EventKind.OTHER)
    tool = _tool(fields, name, kind)
    body = _body(fields, name, kind)
    return HookEvent(
        client="cursor",
        source_event=source_event or "other",
        kind=kind,
        session_key=session_key(fields, query, "conversation_id", "session_id", "parent_conversation_id"),
        speaker=speaker_of(kind, tool, is_agent=name in _AGENT_SPEAKS),
        cwd=_cwd(fields, query),
        occurred_at=occurred_at(fields, query),
        title=title_of(fields, kind, tool, body) or name or "other",
        body=body,
        tool=tool,
        model=optional_text(fields, "model"),
        # A generation id is shared by all that follows one prompt.
        unique_id=None if tool is None else tool.call_id,
        agent_id=optional_text(fields, "subagent_id", "agent_id"),
        agent_type=optional_text(fields, "subagent_type", "agent_type"),
        reason=optional_text(fields, "reason", "trigger", "failure_type", "status"),
        transcript_path=optional_text(fields, "agent_transcript_path", "transcript_path"),
        extension=extension(query),
    )


def _cwd(fields: Payload, query: Mapping[str, str]) -> str | None:
    """Where the call ran, else the first folder that is open; hooks themselves run in `~/.cursor`."""
    if (named := optional_text(fields, "cwd")) is not None:
        return named
    roots = fields.get("workspace_roots")
    first = cast("list[Any]", roots)[0] if isinstance(roots, list) and roots else None
    return first if isinstance(first, str) and first else cwd_of(fields, query)


def _tool(fields: Payload, name: str, kind: EventKind) -> ToolCall | None:
    if kind not in (EventKind.PRE_TOOL_USE, EventKind.POST_TOOL_USE):
        return None
    call = _as_call(fields, name)
    if kind is EventKind.PRE_TOOL_USE:
        return tool_call(call, outcome=Outcome.UNKNOWN)
    if name == "posttoolusefailure":
        return tool_call(call, outcome=Outcome.ERROR, response=text_field(fields, "error_message", "error"))
    given = fields.get("tool_output", fields.get("result_json", fields.get("output")))
    # Only the shell's own event does not say how the command ended.
    outcome = Outcome.UNKNOWN if name == "aftershellexecution" else Outcome.SUCCESS
    return tool_call(call, outcome=outcome, response=_inner(given))


def _as_call(fields: Payload, name: str) -> Payload:
    """The payload with name, input and id of the call in the places where all events have them."""
    changed: dict[str, Any] = {**fields, "tool_input": _inner(fields.get("tool_input"))}
    if (tool := _TOOL_OF.get(name)) is not None:
        given = {key: fields[key] for key in ("command", "file_path") if key in fields}
        changed |= {"tool_name": tool, "tool_input": given}
    if (used := optional_text(fields, "tool_use_id", "tool_call_id")) is not None:
        changed["tool_use_id"] = _LINE_BREAKS.sub(".", used.strip())
    return changed


def _inner(value: Any) -> Any:
    """What Cursor put into a string as JSON; any other value as it is."""
    if not isinstance(value, str) or len(value) > _INNER_JSON_MAX_CHARS:
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _body(fields: Payload, name: str, kind: EventKind) -> str:
    if kind is EventKind.USER_PROMPT:
        return prompt_of(fields, "prompt")
    if name == "subagentstop":
        return text_field(fields, "summary", "description")
    if name == "subagentstart":
        return text_field(fields, "task")
    return text_field(fields, "text") if name == "afteragentresponse" else ""


CURSOR = agents.add("cursor")(
    AgentClient(
        name="cursor",
        title="Cursor",
        aliases=("cursor-agent", "cursor-cli"),
        # Shell, MCP and file events of their own would say again what `postToolUse` says.
        hook_events=(
            "sessionStart",
            "beforeSubmitPrompt",
            "postToolUse",
            "postToolUseFailure",
            "subagentStop",
            "preCompact",
            "afterAgentResponse",
            "stop",
            "sessionEnd",
        ),
        read=read,
        injects_at=frozenset((EventKind.SESSION_START,)),
    )
)

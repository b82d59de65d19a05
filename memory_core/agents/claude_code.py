"""Claude Code: its hook payloads, read into events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from memory_core.agents import AgentClient, agents
from memory_core.agents._payload import (
    Payload,
    as_payload,
    clean,
    cwd_of,
    event_name,
    extension,
    first_line,
    folded,
    occurred_at,
    optional_text,
    prompt_of,
    session_key,
    text_field,
    text_of,
)
from memory_core.agents._tool import call_id, headline, tool_call
from memory_core.domain.event import EventKind, HookEvent, Outcome, Speaker, ToolCall

_KINDS = {
    folded(name): kind
    for name, kind in {
        "SessionStart": EventKind.SESSION_START,
        "UserPromptSubmit": EventKind.USER_PROMPT,
        "UserPrompt": EventKind.USER_PROMPT,
        "PreToolUse": EventKind.PRE_TOOL_USE,
        "PostToolUse": EventKind.POST_TOOL_USE,
        "PostToolUseFailure": EventKind.POST_TOOL_USE,
        "PreCompact": EventKind.PRE_COMPACT,
        "PostCompact": EventKind.POST_COMPACTION,
        "PostCompaction": EventKind.POST_COMPACTION,
        "Notification": EventKind.NOTIFICATION,
        "Stop": EventKind.STOP,
        "StopFailure": EventKind.STOP,
        "SessionEnd": EventKind.SESSION_END,
    }.items()
}
_AGENT_SPEAKS = {folded(name) for name in ("Stop", "StopFailure", "SubagentStop", "MessageDisplay")}
_USER_SPEAKS = {folded(name) for name in ("UserPromptSubmit", "UserPrompt", "UserPromptExpansion")}
_ABOUT_A_TOOL = {folded(name) for name in ("PermissionRequest", "PermissionDenied")}
_REASONS = ("reason", "source", "trigger", "load_reason", "notification_type", "memory_type", "action")


def read(payload: Mapping[str, Any], query: Mapping[str, str]) -> HookEvent:
    """One Claude Code hook payload as an event; `Invalid` without a session id."""
    fields = as_payload(payload)
    source_event = event_name(fields, query)
    name = folded(source_event)
    kind = _KINDS.get(name, EventKind.OTHER)
    tool = _tool(fields, name, kind)
    title, body = _texts(fields, name, kind, tool)
    return HookEvent(
        client="claude-code",
        source_event=source_event or "other",
        kind=kind,
        session_key=session_key(fields, query),
        speaker=_speaker(name, tool),
        cwd=cwd_of(fields, query),
        occurred_at=occurred_at(fields, query),
        title=title,
        body=body,
        tool=tool,
        model=optional_text(fields, "model"),
        unique_id=_unique_id(fields, name),
        agent_id=optional_text(fields, "agent_id"),
        agent_type=optional_text(fields, "agent_type"),
        reason=_reason(fields, name),
        transcript_path=optional_text(fields, "agent_transcript_path", "transcript_path"),
        extension=extension(query),
    )


def _tool(fields: Payload, name: str, kind: EventKind) -> ToolCall | None:
    if kind is EventKind.PRE_TOOL_USE or name in _ABOUT_A_TOOL:
        outcome = Outcome.ERROR if name == "permissiondenied" else Outcome.UNKNOWN
        return tool_call(fields, outcome=outcome)
    if kind is not EventKind.POST_TOOL_USE:
        return None
    response = fields.get("tool_response", fields.get("tool_output"))
    if name == "posttoolusefailure":
        return tool_call(fields, outcome=Outcome.ERROR, response=fields.get("error", response))
    return tool_call(fields, outcome=Outcome.SUCCESS, response=response)


def _texts(fields: Payload, name: str, kind: EventKind, tool: ToolCall | None) -> tuple[str, str]:
    """Title and body. Neither is cut here: secrets are redacted before anything is shortened."""
    if tool is not None:
        return headline(tool), text_field(fields, "reason") if name == "permissiondenied" else ""
    body = _body(fields, name, kind)
    if kind is EventKind.SESSION_START:
        return text_field(fields, "session_title", "model") or "session start", ""
    title = text_field(fields, "title", "task_subject") or first_line(body)
    return title or _plain_title(name, kind), body


def _plain_title(name: str, kind: EventKind) -> str:
    return kind.value.replace("-", " ") if kind is not EventKind.OTHER else name or "other"


def _body(fields: Payload, name: str, kind: EventKind) -> str:
    if name in _USER_SPEAKS:
        return prompt_of(fields, "prompt", "message", "text")
    if name in _AGENT_SPEAKS:
        return text_field(fields, "last_assistant_message", "delta", "error_details", "error")
    if kind is EventKind.POST_COMPACTION:
        return text_field(fields, "compact_summary", "summary")
    if kind is EventKind.PRE_COMPACT:
        return text_field(fields, "custom_instructions")
    if kind in (EventKind.SESSION_START, EventKind.SESSION_END):
        return ""
    if name == "posttoolbatch":
        return _batch(fields)
    texts = ("message", "task_description", "task_subject", "content", "file_path", "new_cwd", "path", "name")
    return text_field(fields, *texts)


def _batch(fields: Payload) -> str:
    """The names of the tools that ran side by side; each has its own event."""
    calls = fields.get("tool_calls")
    entries = cast("list[Any]", calls) if isinstance(calls, list) else []
    return "\n".join(
        headline(tool_call(cast("Payload", entry), outcome=Outcome.UNKNOWN))
        for entry in entries
        if isinstance(entry, dict)
    )


def _speaker(name: str, tool: ToolCall | None) -> Speaker:
    if name in _USER_SPEAKS or name == "elicitationresult":
        return Speaker.USER
    if name in _AGENT_SPEAKS:
        return Speaker.AGENT
    return Speaker.TOOL if tool is not None else Speaker.SYSTEM


def _unique_id(fields: Payload, name: str) -> str | None:
    """Ids that name this event alone: a prompt id is shared by all that follows the prompt until the next."""
    if (used := call_id(fields)) is not None:
        return used
    if name in ("userpromptsubmit", "userprompt"):
        return optional_text(fields, "prompt_id")
    if name == "messagedisplay" and (message := optional_text(fields, "message_id")) is not None:
        return f"{message}-{text_of(fields.get('index'))}"
    return None


def _reason(fields: Payload, name: str) -> str | None:
    if name == "stopfailure":
        return optional_text(fields, "error")
    reason = optional_text(fields, *_REASONS)
    return None if reason is None else clean(reason)


CLAUDE_CODE = agents.add("claude-code")(
    AgentClient(
        name="claude-code",
        title="Claude Code",
        aliases=("claude", "claudecode"),
        hook_events=(
            "SessionStart",
            "UserPromptSubmit",
            "PostToolUse",
            "PostToolUseFailure",
            "SubagentStop",
            "PreCompact",
            "PostCompact",
            "Notification",
            "Stop",
            "StopFailure",
            "SessionEnd",
        ),
        read=read,
        injects_at=frozenset((EventKind.SESSION_START, EventKind.USER_PROMPT)),
    )
)

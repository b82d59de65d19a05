"""Codex CLI: its hook payloads, read into events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
from memory_core.agents._tool import call_id, speaker_of, title_of, tool_call
from memory_core.domain.event import EventKind, HookEvent, Outcome, ToolCall

_KINDS = {
    folded(name): kind
    for name, kind in {
        "SessionStart": EventKind.SESSION_START,
        "UserPromptSubmit": EventKind.USER_PROMPT,
        "UserPrompt": EventKind.USER_PROMPT,
        "PreToolUse": EventKind.PRE_TOOL_USE,
        "PostToolUse": EventKind.POST_TOOL_USE,
        "PreCompact": EventKind.PRE_COMPACT,
        "PostCompact": EventKind.POST_COMPACTION,
        "PostCompaction": EventKind.POST_COMPACTION,
        "Notification": EventKind.NOTIFICATION,
        "Stop": EventKind.STOP,
        "StopFailure": EventKind.STOP,
        "Interrupt": EventKind.STOP,
        "SessionEnd": EventKind.SESSION_END,
    }.items()
}
_AGENT_SPEAKS = {folded(name) for name in ("Stop", "StopFailure", "SubagentStop")}
#: What Codex itself puts in the place of a prompt; nobody said it.
_NOT_A_PROMPT = ("# AGENTS.md instructions for", "<permissions instructions>", "<INSTRUCTIONS>")


def read(payload: Mapping[str, Any], query: Mapping[str, str]) -> HookEvent:
    """One Codex hook payload as an event; `Invalid` without a session id."""
    fields = as_payload(payload)
    source_event = event_name(fields, query)
    name = folded(source_event)
    tool = _tool(fields, name)
    body = _body(fields, name)
    kind = _kind(name, body)
    return HookEvent(
        client="codex",
        source_event=source_event or "other",
        kind=kind,
        session_key=session_key(fields, query),
        speaker=speaker_of(kind, tool, is_agent=name in _AGENT_SPEAKS),
        cwd=cwd_of(fields, query),
        occurred_at=occurred_at(fields, query),
        title=title_of(fields, kind, tool, body) or name or "other",
        body=body,
        tool=tool,
        model=optional_text(fields, "model"),
        # A turn id names no single event: a running turn takes further prompts and stops.
        unique_id=call_id(fields),
        agent_id=optional_text(fields, "agent_id"),
        agent_type=optional_text(fields, "agent_type"),
        reason="interrupt" if name == "interrupt" else optional_text(fields, "reason", "source", "trigger"),
        transcript_path=optional_text(fields, "agent_transcript_path", "transcript_path"),
        extension=extension(query),
    )


def _kind(name: str, body: str) -> EventKind:
    kind = _KINDS.get(name, EventKind.OTHER)
    if kind is EventKind.USER_PROMPT and body.startswith(_NOT_A_PROMPT):
        return EventKind.OTHER
    return kind


def _tool(fields: Payload, name: str) -> ToolCall | None:
    if name in ("pretooluse", "permissionrequest"):
        return tool_call(fields, outcome=Outcome.UNKNOWN)
    if name == "posttooluse":
        # Codex reports failed commands here too, and a plain string does not say how it ended.
        return tool_call(fields, outcome=Outcome.UNKNOWN, response=fields.get("tool_response"))
    return None


def _body(fields: Payload, name: str) -> str:
    if name in ("userpromptsubmit", "userprompt"):
        return prompt_of(fields, "prompt", "message", "text")
    if name in _AGENT_SPEAKS:
        return text_field(fields, "last_assistant_message", "error_details", "error")
    if name in ("postcompact", "postcompaction"):
        return text_field(fields, "compact_summary", "summary", "message")
    return (
        text_field(fields, "message") if _KINDS.get(name, EventKind.OTHER) is EventKind.NOTIFICATION else ""
    )


CODEX = agents.add("codex")(
    AgentClient(
        name="codex",
        title="Codex CLI",
        aliases=("codex-cli", "openai-codex"),
        hook_events=(
            "SessionStart",
            "UserPromptSubmit",
            "PostToolUse",
            "SubagentStop",
            "PreCompact",
            "PostCompact",
            "Stop",
            "Interrupt",
            "SessionEnd",
        ),
        read=read,
        injects_at=frozenset((EventKind.SESSION_START, EventKind.USER_PROMPT)),
    )
)

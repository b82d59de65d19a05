"""Any other source: plain documented fields, for scripts, chat exports and clients without an adapter.

Fields of the JSON object (those without a mark are optional):

    session_id   required; text or number
    event        a kind (`user-prompt`, `stop`, …); by default what fits the speaker
    speaker      user | agent | tool | system; by default what fits the event
    speaker_name what who spoke is called, where several people take part
    text         what was said
    title        one line; by default the first line of the text
    occurred_at  RFC 3339 with an offset, or milliseconds or microseconds since 1970
    cwd, model, reason, message_id, agent_id, agent_type, transcript_path, source_event
    tool         {name (required), call_id, command, paths, outcome, result}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from memory_core.agents import AgentClient, agents
from memory_core.agents._payload import (
    Payload,
    as_payload,
    clean,
    cwd_of,
    extension,
    first_line,
    folded,
    microseconds,
    one_of,
    optional_text,
    session_key,
    text_of,
)
from memory_core.agents._tool import family_of, headline, is_own_tool
from memory_core.domain.event import EventKind, HookEvent, Outcome, Speaker, ToolCall
from memory_core.errors import Invalid
from memory_core.limits import TOOL_PATHS_MAX

_FIELDS = frozenset(
    [
        "session_id",
        "event",
        "speaker",
        "speaker_name",
        "text",
        "title",
        "occurred_at",
        "cwd",
        "model",
        "reason",
        "message_id",
        "agent_id",
        "agent_type",
        "transcript_path",
        "source_event",
        "tool",
    ]
)
_TOOL_FIELDS = frozenset(["name", "call_id", "command", "paths", "outcome", "result"])
_EVENTS = {folded(kind.value): kind for kind in EventKind} | {
    "userpromptsubmit": EventKind.USER_PROMPT,
    "message": EventKind.USER_PROMPT,
    "postcompact": EventKind.POST_COMPACTION,
}
_SPEAKERS = {speaker.value: speaker for speaker in Speaker} | {"assistant": Speaker.AGENT}
_EVENT_OF = {
    Speaker.USER: EventKind.USER_PROMPT,
    Speaker.AGENT: EventKind.STOP,
    Speaker.TOOL: EventKind.POST_TOOL_USE,
    Speaker.SYSTEM: EventKind.NOTIFICATION,
}
_SPEAKER_OF = {
    EventKind.USER_PROMPT: Speaker.USER,
    EventKind.STOP: Speaker.AGENT,
    EventKind.PRE_TOOL_USE: Speaker.TOOL,
    EventKind.POST_TOOL_USE: Speaker.TOOL,
}


def read(payload: Mapping[str, Any], query: Mapping[str, str]) -> HookEvent:
    """One plain event; `Invalid` names the field that cannot be read."""
    fields = as_payload(payload)
    for name in fields:
        one_of(name, _FIELDS, "field")
    namespace = extension(query)
    kind, source_event, speaker = _who_and_what(fields, query, namespace)
    tool = _tool(fields)
    if tool is None and kind in (EventKind.PRE_TOOL_USE, EventKind.POST_TOOL_USE):
        raise Invalid(f"a {kind.value} event needs `tool` with a `name`")
    body = text_of(fields.get("text"))
    return HookEvent(
        client="generic",
        source_event=source_event,
        kind=kind,
        session_key=session_key(fields, query, "session_id"),
        speaker=speaker,
        speaker_name=_text(fields, "speaker_name"),
        cwd=_text(fields, "cwd") or cwd_of({}, query),
        occurred_at=_occurred_at(fields, query),
        title=_title(fields, kind, tool, body),
        body=body,
        tool=tool,
        model=_text(fields, "model"),
        unique_id=_text(fields, "message_id") or (None if tool is None else tool.call_id),
        agent_id=_text(fields, "agent_id"),
        agent_type=_text(fields, "agent_type"),
        reason=_text(fields, "reason"),
        transcript_path=_text(fields, "transcript_path"),
        extension=namespace,
    )


def _who_and_what(
    fields: Payload, query: Mapping[str, str], namespace: str | None
) -> tuple[EventKind, str, Speaker]:
    named = _text(fields, "speaker")
    speaker = None if named is None else _SPEAKERS[one_of(named.lower(), _SPEAKERS, "speaker")]
    event = _text(fields, "event") or query.get("event") or ""
    if event:
        kind = _EVENTS.get(folded(event))
        if kind is None and namespace is None:
            one_of(event, (kind.value for kind in EventKind), "event")
        kind = kind or EventKind.OTHER
    elif speaker is not None:
        kind = _EVENT_OF[speaker]
    else:
        raise Invalid("give `event` or `speaker`")
    source_event = _text(fields, "source_event") or query.get("source_event") or event or kind.value
    return kind, source_event, speaker or _SPEAKER_OF.get(kind, Speaker.SYSTEM)


def _title(fields: Payload, kind: EventKind, tool: ToolCall | None, body: str) -> str:
    given = _text(fields, "title")
    if given is not None:
        return clean(given)
    return headline(tool) if tool is not None else first_line(body) or kind.value.replace("-", " ")


def _occurred_at(fields: Payload, query: Mapping[str, str]) -> int | None:
    given = fields.get("occurred_at", query.get("occurred_at"))
    if given is None:
        return None
    try:
        return microseconds(given)
    except Invalid as error:
        raise Invalid(f"occurred_at: {error}") from error


def _tool(fields: Payload) -> ToolCall | None:
    given = fields.get("tool")
    if given is None:
        return None
    if isinstance(given, str):
        given = {"name": given}
    if not isinstance(given, dict):
        raise Invalid("`tool` is an object with a `name`")
    tool = cast("Payload", given)
    for field in tool:
        one_of(field, _TOOL_FIELDS, "field of tool")
    name = _text(tool, "name")
    if name is None:
        raise Invalid("`tool` needs a `name`")
    command = _text(tool, "command")
    return ToolCall(
        name=name,
        family=family_of(name),
        call_id=_text(tool, "call_id"),
        command=None if command is None else clean(command),
        paths=_paths(tool),
        outcome=Outcome(one_of(_text(tool, "outcome") or "unknown", Outcome, "outcome")),
        result=None if tool.get("result") is None or is_own_tool(name) else text_of(tool["result"]),
    )


def _paths(tool: Payload) -> tuple[str, ...]:
    given = tool.get("paths", [])
    if not isinstance(given, list) or not all(isinstance(path, str) for path in cast("list[Any]", given)):
        raise Invalid("`tool.paths` is a list of texts")
    return tuple(clean(path) for path in cast("list[str]", given)[:TOOL_PATHS_MAX])


def _text(fields: Payload, name: str) -> str | None:
    value = fields.get(name)
    if value is not None and not isinstance(value, str):
        raise Invalid(f"`{name}` is text")
    return optional_text(fields, name)


GENERIC = agents.add("generic")(
    AgentClient(name="generic", title="Generic JSON", aliases=("other", "plain"), read=read)
)

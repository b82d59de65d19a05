"""How tool events are read into a `ToolCall`: family, command, paths, outcome, result. Shared by the adapters; no plugin."""

from __future__ import annotations

import re
from typing import Any, cast

from memory_core.agents._payload import Payload, clean, first_line, opened, optional_text, text_field, text_of
from memory_core.domain.event import EventKind, Outcome, Speaker, ToolCall
from memory_core.domain.tool_input import family_of, is_patch, named_paths
from memory_core.limits import TOOL_PATHS_MAX

#: Tools of memoryd itself: what they return is memory already.
_OWN_TOOLS = re.compile(
    r"mcp__?memoryd_|(?:MCP:)?memory_(query|recent|read_page|status|briefing|read_session_observations|handoff_\w+)\Z"
)
_CALL_ID = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_EXIT_CODE = re.compile(
    r"\A(?:[^\n]{0,200}\n){0,4}?[^\n]{0,80}?exit(?:ed with)? code:? (-?\d{1,6})\b", re.IGNORECASE
)


def is_own_tool(tool_name: str) -> bool:
    return _OWN_TOOLS.match(tool_name) is not None


def tool_call(payload: Payload, *, outcome: Outcome, response: Any = None) -> ToolCall:
    """The call that a payload with `tool_name`, `tool_input` and `tool_use_id` speaks of.

    `outcome` is what holds when `response` itself says nothing of success.
    """
    response = opened(response)
    name = optional_text(payload, "tool_name", "toolName") or "unknown"
    given = payload.get("tool_input", payload.get("toolInput"))
    arguments: Payload = cast("Payload", given) if isinstance(given, dict) else {}
    result = None if response is None else text_of(response)
    return ToolCall(
        name=name,
        family=family_of(name),
        call_id=call_id(payload),
        command=_command(name, arguments, given),
        paths=tuple(clean(path) for path in named_paths(name, arguments)[:TOOL_PATHS_MAX]),
        outcome=_outcome_of(response, otherwise=outcome),
        result=None if is_own_tool(name) else result,
    )


def call_id(payload: Payload) -> str | None:
    value = optional_text(payload, "tool_use_id", "toolUseId", "tool_call_id", "call_id")
    return value if value is not None and _CALL_ID.fullmatch(value) else None


def _outcome_of(response: Any, *, otherwise: Outcome) -> Outcome:
    if isinstance(response, str):
        found = _EXIT_CODE.match(response)
        return otherwise if found is None else _of_flag(int(found.group(1)) == 0)
    if not isinstance(response, dict):
        return otherwise
    fields = cast("Payload", response)
    metadata = fields.get("metadata")
    if isinstance(metadata, dict):
        otherwise = _outcome_of(metadata, otherwise=otherwise)
    if fields.get("is_error") or fields.get("isError") or fields.get("interrupted") is True:
        return Outcome.ERROR
    for name in ("exit_code", "exitCode", "returncode"):
        code = fields.get(name)
        if isinstance(code, int) and not isinstance(code, bool):
            return _of_flag(code == 0)
    success = fields.get("success")
    if isinstance(success, bool):
        return _of_flag(success)
    return Outcome.ERROR if fields.get("error") else otherwise


def headline(call: ToolCall) -> str:
    """One line for lists: the tool and what it was given."""
    what = call.command or ", ".join(call.paths[:3])
    line = next((line.strip() for line in what.splitlines() if line.strip()), "")
    return f"{call.name}: {line}" if line else call.name


def title_of(fields: Payload, kind: EventKind, tool: ToolCall | None, body: str) -> str:
    """What an event is listed under. Not cut here: secrets are redacted before anything is shortened."""
    if tool is not None:
        return headline(tool)
    if kind is EventKind.SESSION_START:
        return text_field(fields, "model") or "session start"
    return first_line(body) or ("" if kind is EventKind.OTHER else kind.value.replace("-", " "))


def speaker_of(kind: EventKind, tool: ToolCall | None, *, is_agent: bool) -> Speaker:
    """Who speaks in an event; `is_agent`: the client's name of the event says that the agent does."""
    if kind is EventKind.USER_PROMPT:
        return Speaker.USER
    if is_agent:
        return Speaker.AGENT
    return Speaker.TOOL if tool is not None else Speaker.SYSTEM


def _of_flag(ok: bool) -> Outcome:
    return Outcome.SUCCESS if ok else Outcome.ERROR


def _command(name: str, arguments: Payload, given: Any) -> str | None:
    if isinstance(given, str):
        return clean(given) or None
    if is_patch(name):
        return None  # the patch body is no command; its paths are read below
    command = arguments.get("command", arguments.get("cmd"))
    if isinstance(command, list):
        command = " ".join(str(part) for part in cast("list[Any]", command))
    if isinstance(command, str) and command:
        return clean(command)
    found = optional_text(arguments, "query", "pattern", "url", "description")
    return None if found is None else clean(found)

"""Which tool events are kept, by a directory's own wish: whole, without what they say, or not at all.

The client decides before anything is written down, because only it knows the patterns. It says in the event
how it decided; the gate looks at what came and only ever makes it less. Pure; the shim uses it too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from memory_core.domain.path_glob import PathGlob, plain
from memory_core.domain.tool_input import family_of, named_paths
from memory_core.errors import Invalid
from memory_core.limits import (
    CAPTURE_PATH_MAX_CHARS,
    CAPTURE_PATHS_MAX,
    CAPTURE_PATTERNS_MAX,
    CAPTURE_STEPS_MAX,
)

#: Where in an event the client says how it decided.
PROTOCOL_FIELD = "_memoryd_capture"
PROTOCOL_VERSION = 1

KEEP, METADATA_ONLY, DROP = "keep", "metadata-only", "drop"
INACTIVE, ACTIVE, BROKEN = "inactive", "active", "invalid"
#: What became of looking for paths: not looked for, found, none there, not readable, too many.
NOT_NEEDED, FOUND, NONE, UNREADABLE, OVER_BUDGET = "not-needed", "found", "none", "unreadable", "over-budget"

_FILE, _SEARCH = "file", "search-list"
_FAMILIES = (_FILE, _SEARCH, "non-file", "unknown")
#: What may stay of an event that keeps nothing else: who, where and when, never what.
_IDENTITY = (
    *("hook_event_name", "hookEventName", "event", "timestamp", "cwd", "workspace_roots"),
    *("session_id", "sessionId", "sessionID", "conversation_id", "parent_conversation_id"),
    *("agent_id", "agent_type", "subagent_id", "subagent_type", "subagentType", "tool_name", "toolName"),
    *("tool_use_id", "toolUseId", "tool_call_id", "call_id"),
)


class Policy(NamedTuple):
    """`state` is inactive, active or invalid; `reason` says what is wrong with one that is invalid."""

    state: str
    globs: tuple[PathGlob, ...] = ()
    reason: str = ""


class Inspected(NamedTuple):
    """What an event's tool is about."""

    family: str
    paths: tuple[str, ...] = ()
    #: Whether everything that should be a path was one.
    is_readable: bool = True


class Decision(NamedTuple):
    disposition: str
    policy_state: str
    family: str
    path_count: int
    extraction_state: str

    def protocol(self) -> dict[str, Any]:
        return {
            "version": PROTOCOL_VERSION,
            "disposition": self.disposition,
            "policy_state": self.policy_state,
            "tool_family": self.family,
            "path_count": self.path_count,
            "extraction_state": self.extraction_state,
        }


NO_POLICY = Policy(INACTIVE)


def policy_of(capture: Any, *, root: str, home: str) -> Policy:
    """The policy in a marker's `[capture]` table, whose patterns are relative to `root`. Never raises.

    One that is wrong anywhere is invalid as a whole: half of somebody's wishes are not their wishes.
    """
    if capture is None:
        return NO_POLICY
    if not isinstance(capture, dict):
        return Policy(BROKEN, reason="[capture] is no table")
    table = cast("dict[str, Any]", capture)
    patterns = table.get("ignore_paths", [])
    if unknown := sorted(set(table) - {"ignore_paths"}):
        return Policy(BROKEN, reason=f"[capture] knows no {unknown[0][:64]!r}")
    if not isinstance(patterns, list) or len(cast("list[Any]", patterns)) > CAPTURE_PATTERNS_MAX:
        return Policy(BROKEN, reason=f"ignore_paths is a list of at most {CAPTURE_PATTERNS_MAX} patterns")
    globs: list[PathGlob] = []
    for pattern in cast("list[Any]", patterns):
        if not isinstance(pattern, str):
            return Policy(BROKEN, reason="a pattern is text")
        try:
            globs.append(PathGlob(pattern, root=root, home=home))
        except Invalid as error:
            return Policy(BROKEN, reason=str(error))
    return Policy(ACTIVE, tuple(globs)) if globs else NO_POLICY


def inspected(payload: Mapping[str, Any]) -> Inspected | None:
    """The tool that a hook payload speaks of, in any client's spelling; None for other events."""
    name, given = _tool_of(payload)
    if not name:
        return None
    family = family_of(name)
    if family != _FILE:
        return Inspected(family)
    arguments = _object(given)
    if arguments is None:
        return Inspected(family, is_readable=False)
    paths = named_paths(name, arguments)
    return Inspected(family, tuple(paths))


def decide(policy: Policy, tool: Inspected, *, cwd: str, home: str) -> Decision:
    """What is kept of this use of a tool. Doubt never keeps a text: it leaves who and when."""
    if policy.state == INACTIVE:
        return _decision(KEEP, policy, tool, NOT_NEEDED)
    if tool.family == _SEARCH and policy.state == ACTIVE:
        return _decision(DROP, policy, tool, NOT_NEEDED)  # a listing may name anything
    if tool.family != _FILE:
        return _decision(KEEP, policy, tool, NOT_NEEDED)
    if policy.state == BROKEN:
        return _decision(METADATA_ONLY, policy, tool, NOT_NEEDED)
    if not tool.is_readable:
        return _decision(METADATA_ONLY, policy, tool, UNREADABLE)
    if not tool.paths:
        return _decision(METADATA_ONLY, policy, tool, NONE)
    if len(tool.paths) > CAPTURE_PATHS_MAX or any(len(p) > CAPTURE_PATH_MAX_CHARS for p in tool.paths):
        return _decision(METADATA_ONLY, policy, tool, OVER_BUDGET)
    try:
        paths = [plain(path, cwd=cwd, home=home) for path in tool.paths]
    except Invalid:
        return _decision(METADATA_ONLY, policy, tool, UNREADABLE)
    if sum(len(g.tokens) for g in policy.globs) * sum(len(path) for path in paths) > CAPTURE_STEPS_MAX:
        return _decision(METADATA_ONLY, policy, tool, OVER_BUDGET)
    is_ignored = any(one.matches(path) for one in policy.globs for path in paths)
    return _decision(DROP if is_ignored else KEEP, policy, tool, FOUND)


def applied(policy: Policy, payload: dict[str, Any], *, cwd: str, home: str) -> dict[str, Any] | None:
    """The payload as the policy leaves it, saying how it was decided; None when nothing is left."""
    tool = inspected(payload)
    if policy.state == INACTIVE or tool is None:
        return {key: value for key, value in payload.items() if key != PROTOCOL_FIELD}
    decision = decide(policy, tool, cwd=cwd, home=home)
    if decision.disposition == DROP:
        return None
    left = payload if decision.disposition == KEEP else metadata_of(payload)
    return {**left, PROTOCOL_FIELD: decision.protocol()}


def rechecked(payload: Mapping[str, Any]) -> dict[str, Any] | None:
    """A payload as it reached the gate, without the client's word, and no more than that word allows.

    Where the two disagree the event loses its texts, or goes altogether where it is a listing.
    """
    left = {key: value for key, value in payload.items() if key != PROTOCOL_FIELD}
    if PROTOCOL_FIELD not in payload:
        return left
    said, tool = _read_protocol(payload[PROTOCOL_FIELD]), inspected(left)
    if said is not None and said.disposition == DROP:
        return None
    if tool is None and said is not None:
        return left if said.disposition == KEEP else metadata_of(left)
    if tool is not None and tool.family == _SEARCH and (said is None or said.policy_state == ACTIVE):
        return None
    if said is None or tool is None or said.disposition == METADATA_ONLY or not _agrees(said, tool):
        return metadata_of(left)
    return left


def metadata_of(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Who used which tool and when; neither what it was given nor what came back."""
    left = {key: payload[key] for key in _IDENTITY if key in payload}
    tool = payload.get("tool")
    if isinstance(tool, dict):
        inner = cast("dict[str, Any]", tool)
        left["tool"] = {key: inner[key] for key in ("name", "call_id") if key in inner}
    return left


def _agrees(said: Decision, tool: Inspected) -> bool:
    if said.family != tool.family:
        return False
    if tool.family != _FILE or said.policy_state == INACTIVE:
        return True
    return (
        said.policy_state == ACTIVE and said.extraction_state == FOUND and said.path_count == len(tool.paths)
    )


def _decision(disposition: str, policy: Policy, tool: Inspected, extraction: str) -> Decision:
    return Decision(disposition, policy.state, tool.family, len(tool.paths), extraction)


def _read_protocol(value: Any) -> Decision | None:
    """The client's word, or None when it cannot be understood."""
    if not isinstance(value, dict):
        return None
    fields = dict(cast("dict[str, Any]", value))
    if fields.pop("version", None) != PROTOCOL_VERSION:
        return None
    try:
        said = Decision(family=fields.pop("tool_family"), **fields)
    except (KeyError, TypeError):
        return None
    is_known = (
        said.disposition in (KEEP, METADATA_ONLY, DROP)
        and said.policy_state in (INACTIVE, ACTIVE, BROKEN)
        and said.family in _FAMILIES
        and said.extraction_state in (NOT_NEEDED, FOUND, NONE, UNREADABLE, OVER_BUDGET)
        and type(said.path_count) is int
    )
    return said if is_known else None


def _tool_of(payload: Mapping[str, Any]) -> tuple[str, Any]:
    """Name and input. Events about a file that name no tool are the use of one."""
    for name, given in (("tool_name", "tool_input"), ("toolName", "toolInput")):
        if isinstance(value := payload.get(name), str) and value:
            return value, payload.get(given, payload)
    tool = payload.get("tool")
    if isinstance(tool, dict):
        inner = cast("dict[str, Any]", tool)
        return str(inner.get("name") or ""), inner
    if isinstance(tool, str) and tool:
        return tool, payload.get("args", payload)
    return ("read_file", payload) if isinstance(payload.get("file_path"), str) else ("", None)


def _object(given: Any) -> Mapping[str, Any] | None:
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            return None
    return cast("Mapping[str, Any]", given) if isinstance(given, dict) else None

"""Tools that a session offers to its model: declared once, allowed call by call, narrowed but never widened."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from client.durable.schema import check_schema
from client.durable.waiting import Cancellation
from memory_core import limits
from memory_core.errors import Invalid

_NAME = re.compile(rf"[A-Za-z0-9_-]{{1,{limits.AGENT_TOOL_NAME_MAX_CHARS}}}")

CancelPolicy = Literal["finish_once_started", "interruptible"]


class ToolError(Exception):
    """A tool says that it could not do it; the model reads why and goes on."""


class FatalToolError(Exception):
    """A tool says that the turn must not go on. What it did until then is uncertain."""


@dataclass(frozen=True, kw_only=True)
class ToolOutput:
    """What a tool says. A tool that returns a text says `ToolOutput(content=text)`."""

    content: str
    is_error: bool = False


@dataclass(frozen=True, kw_only=True)
class ToolContext:
    """What a tool knows about its call, if it takes a second argument."""

    #: The same for one call, whatever happens; good as an idempotency key of what the tool does.
    call_id: str
    #: The session's directory.
    directory: str
    #: Set when the turn is to end; a tool that lasts may look at it and end early.
    cancelled: Cancellation


@dataclass(frozen=True, kw_only=True)
class Tool:
    """One tool. Raises `Invalid` for a name, description or schema that cannot be offered."""

    name: str
    description: str
    #: JSON Schema of the arguments, an object.
    schema: Mapping[str, Any]
    #: Takes the arguments, or the arguments and a `ToolContext`; returns a text or a `ToolOutput`.
    run: Callable[..., Any]
    #: Why somebody must allow each call: a text, or a function of the arguments that gives one, or None.
    approval: str | Callable[[Mapping[str, Any]], str | None] | None = None
    #: `finish_once_started`: a cancelled turn waits for its end. `interruptible`: it does not, and what came of it is uncertain.
    on_cancel: CancelPolicy = "finish_once_started"
    #: Neighbouring calls of such tools run side by side; any other call runs alone, in the order of the plan.
    is_parallel: bool = False
    #: Names this way of doing it. Another one is another authority, and a session goes on with its own only.
    version: str = "1"

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise Invalid(
                f"a tool's name is 1 to {limits.AGENT_TOOL_NAME_MAX_CHARS} letters, digits, - or _, not {self.name[:80]!r}"
            )
        if len(self.description.encode()) > limits.TOOL_DESCRIPTION_MAX_BYTES:
            raise Invalid(
                f"the description of {self.name} is longer than {limits.TOOL_DESCRIPTION_MAX_BYTES} bytes"
            )
        if self.on_cancel not in ("finish_once_started", "interruptible"):
            raise Invalid(f"{self.name}: on_cancel is finish_once_started or interruptible")
        check_schema(self.schema)
        if len(json.dumps(self.schema)) > limits.TOOL_SCHEMA_MAX_BYTES:
            raise Invalid(f"the schema of {self.name} is longer than {limits.TOOL_SCHEMA_MAX_BYTES} bytes")

    @property
    def declaration(self) -> dict[str, Any]:
        return {"name": self.name, "description": self.description, "schema": self.schema}

    @property
    def takes_context(self) -> bool:
        try:
            taken = inspect.signature(self.run).parameters.values()
        except (TypeError, ValueError):
            return False
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        positional = [one for one in taken if one.kind in kinds]
        return len(positional) > 1 or any(one.kind is inspect.Parameter.VAR_POSITIONAL for one in taken)

    def reason_for(self, arguments: Mapping[str, Any]) -> str | None:
        """Why this call must be allowed; None when it need not be."""
        return self.approval(arguments) if callable(self.approval) else self.approval


@dataclass(frozen=True, kw_only=True)
class ApprovalRequest:
    """What is asked before a call: it may be allowed once, or denied."""

    call_id: str
    tool_name: str
    #: As the model gave them.
    arguments: Mapping[str, Any]
    directory: str
    reason: str


@dataclass(frozen=True)
class Deny:
    """No; the model reads why."""

    reason: str = ""


@dataclass(frozen=True)
class AllowOnce:
    """Yes, this one call."""


Decision = AllowOnce | Deny
Approve = Callable[[ApprovalRequest], Any]


class Toolbox:
    """The tools of a session's authority, and which of them are enabled now."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        given = sorted(tools, key=lambda tool: tool.name)
        if len(given) > limits.TOOLS_MAX:
            raise Invalid(f"a session has at most {limits.TOOLS_MAX} tools")
        self._tools = {tool.name: tool for tool in given}
        if len(self._tools) != len(given):
            raise Invalid("two tools have one name")
        self._enabled = frozenset(self._tools)

    @property
    def all(self) -> Sequence[Tool]:
        """By name."""
        return tuple(self._tools.values())

    @property
    def enabled(self) -> frozenset[str]:
        return self._enabled

    def narrow(self, names: Iterable[str]) -> None:
        """Enable just these from now on. Raises `Invalid` for a tool that the session's authority does not have."""
        wanted = frozenset(names)
        if unknown := wanted - set(self._tools):
            raise Invalid(
                f"the session has no tool {', '.join(sorted(unknown))}; tools are fixed when it begins"
            )
        self._enabled = wanted

    def reset(self) -> None:
        self._enabled = frozenset(self._tools)

    def usable(self, name: str) -> Tool | None:
        return self._tools[name] if name in self._enabled else None

    def shown(self, used: Iterable[str]) -> tuple[dict[str, Any], ...]:
        """What the model is shown: enabled tools, and disabled ones that `used`, the history's calls, still name."""
        names = self._enabled | (set(used) & set(self._tools))
        return tuple(tool.declaration for tool in self.all if tool.name in names)

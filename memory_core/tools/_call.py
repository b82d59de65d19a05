"""Calling a tool by name: the one entry for MCP and the HTTP API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import memory_core.tools as package
from memory_core.errors import Forbidden
from memory_core.registry import discover
from memory_core.tools import Tool, ToolContext, tools
from memory_core.tools._answers import trimmed
from memory_core.tools._arguments import read_arguments

_MAY_READ = {"admin", "write", "read"}
_MAY_WRITE = {"admin", "write"}


def load_tools() -> None:
    """Import every tool, so that each registers itself; call it before `call_tool`."""
    discover(package)


def call_tool(name: str, arguments: Mapping[str, Any], context: ToolContext) -> dict[str, Any]:
    """Run a tool; its answer as plain JSON values that fit its output schema.

    Raises `NotFound` (no such tool, no such thing), `Invalid`, `Conflict`, `Forbidden`, `Unavailable`,
    `OutcomeUnknown`; each message says what to do.
    """
    tool = tools.get(name)
    check_may_call(tool, context.token_scope)
    return trimmed(tool.run(read_arguments(tool, arguments), context), tool.answer)


def check_may_call(tool: Tool, token_scope: str) -> None:
    """`Forbidden` when a token of that scope may not call the tool."""
    if token_scope not in (_MAY_READ if tool.is_read_only else _MAY_WRITE):
        needed = "read" if tool.is_read_only else "write"
        raise Forbidden(f"{tool.name} needs a token of scope {needed!r}; this one has {token_scope!r}")

"""What the doors need of each registered tool: the tool and its two JSON schemas, made once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import memory_core.tools
from memory_core.registry import discover
from memory_core.tools import Tool, tools
from memory_core.tools._schema import schema_of


@dataclass(frozen=True, kw_only=True)
class ToolEntry:
    tool: Tool
    input_schema: dict[str, Any]
    output_schema: dict[str, Any]


@cache
def load_catalog() -> Mapping[str, ToolEntry]:
    """Every tool by name, in the order of names (clients cache the list)."""
    discover(memory_core.tools)
    return {name: _entry(tool) for name, tool in tools}


def _entry(tool: Tool) -> ToolEntry:
    return ToolEntry(tool=tool, input_schema=schema_of(tool.arguments), output_schema=schema_of(tool.answer))

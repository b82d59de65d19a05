"""What the doors need of each registered tool: the tool and its two JSON schemas, made once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

import memory_core.tools as tools_package
from memory_core.registry import discover
from memory_core.tools import Tool, tools


@dataclass(frozen=True, kw_only=True)
class ToolEntry:
    tool: Tool
    input_schema: dict[str, Any]
    output_schema: dict[str, Any]


def load_catalog() -> Mapping[str, ToolEntry]:
    """Every tool by name, in the order of names (clients cache the list)."""
    discover(tools_package)
    return {name: _entry(tool) for name, tool in tools}


def _entry(tool: Tool) -> ToolEntry:
    return ToolEntry(tool=tool, input_schema=_schema(tool.arguments), output_schema=_schema(tool.answer))


def _schema(kind: type[Any]) -> dict[str, Any]:
    """The JSON schema of a dataclass with its own part at the root, as MCP wants it."""
    (reference,), parts = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    name = str(reference.get("$ref", "")).rpartition("/")[2]
    root = dict(parts.pop(name)) if name in parts else dict(reference)
    root.pop("title", None)
    return {**root, "$defs": parts} if parts else root

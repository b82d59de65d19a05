"""The gate as it is, with the tools beside its own that some scenarios of the suite call by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flask import Flask

import web.app
from memory_core.config import load
from memory_core.errors import Invalid
from memory_core.tools import Tool, ToolContext, tools
from web.catalog import ToolEntry, load_catalog
from web.parts import build

#: The schema that a server is to list word for word.
_SCHEMA_2020_12: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


@dataclass(frozen=True, kw_only=True)
class Nothing:
    pass


@dataclass(frozen=True, kw_only=True)
class Said:
    text: str


def _say(_: Any, __: ToolContext) -> Mapping[str, Any]:
    return {"text": "said"}


def _fail(_: Any, __: ToolContext) -> Mapping[str, Any]:
    raise Invalid("this tool always fails")


def _add(name: str, run: Any = _say) -> None:
    tools.add(name)(
        Tool(
            name=name,
            title=name,
            description="Called by the conformance suite.",
            arguments=Nothing,
            answer=Said,
            run=run,
            aliases={},
            is_read_only=True,
        )
    )


def create_app() -> Flask:
    for name in (
        "test_simple_text",
        "test_logging_tool",
        "test_streaming_elicitation",
        "json_schema_2020_12_tool",
    ):
        _add(name)
    _add("test_error_handling", _fail)
    settings = load()
    parts = build(settings)
    catalog = dict(load_catalog())
    listed = catalog["json_schema_2020_12_tool"]
    catalog["json_schema_2020_12_tool"] = ToolEntry(
        tool=listed.tool, input_schema=_SCHEMA_2020_12, output_schema=listed.output_schema
    )
    parts.catalog = catalog
    return web.app.create_app(settings, parts)

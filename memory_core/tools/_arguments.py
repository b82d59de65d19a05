"""From what a client sends to a tool's arguments: aliases, lenient types, and errors that say what to do."""

from __future__ import annotations

import difflib
import re
import types
from collections.abc import Mapping
from dataclasses import MISSING, fields
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from memory_core.errors import Invalid
from memory_core.tools import Tool

A = TypeVar("A")
_PLACE = re.compile(r" - at `\$\.?([^`]*)`")


def read_arguments(tool: Tool, given: Mapping[str, Any]) -> Any:
    """The tool's arguments in `given`; `Invalid` names the argument that is wrong and those there are.

    `null` means not given; a number or a flag may come as text, a list as its JSON text or as one item.
    """
    known = {field.name: field for field in fields(tool.arguments)}
    values: dict[str, Any] = {}
    for name, value in given.items():
        field_name = tool.aliases.get(name, name)
        if field_name not in known:
            raise Invalid(_unknown(tool, name, list(known)))
        if value is None:
            continue
        if field_name in values and values[field_name] != value:
            raise Invalid(f"{tool.name}: {field_name} is given twice, under two names")
        values[field_name] = value
    for name, field in known.items():
        if name not in values and field.default is MISSING and field.default_factory is MISSING:
            raise Invalid(f"{tool.name}: {name} is missing; {_takes(list(known))}")
    hints = _hints(tool.arguments)
    prepared = {name: _listed(value) if _is_list(hints[name]) else value for name, value in values.items()}
    try:
        return msgspec.convert(prepared, type=tool.arguments, strict=False)
    except msgspec.ValidationError as error:
        raise Invalid(f"{tool.name}: {_reworded(str(error), hints)}") from error


@cache
def _hints(arguments: type) -> Mapping[str, Any]:
    """Names become types by compiling each of them: once, not at each call."""
    return get_type_hints(arguments)


def _unknown(tool: Tool, name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, [*known, *tool.aliases], n=1, cutoff=0.5)
    guess = f" did you mean {tool.aliases.get(near[0], near[0])}?" if near else ""
    return f"{tool.name} takes no argument {name[:64]!r};{guess} {_takes(known)}"


def _takes(known: list[str]) -> str:
    return f"it takes: {', '.join(known)}" if known else "it takes no arguments"


def _reworded(message: str, hints: Mapping[str, Any]) -> str:
    place = _PLACE.search(message)
    text = _PLACE.sub("", message).replace("`", "").replace("Expected", "expected")
    if place is None or not place.group(1):
        return text
    if "enum value" in text and (allowed := _allowed(hints.get(place.group(1)))):
        text = f"it is one of: {', '.join(allowed)}"
    return f"{place.group(1)}: {text}"


def _allowed(hint: Any) -> tuple[str, ...]:
    """The values of a `Literal`."""
    if get_origin(hint) is Literal:
        return tuple(map(str, get_args(hint)))
    return next((found for part in get_args(hint) if (found := _allowed(part))), ())


def _is_list(hint: Any) -> bool:
    origin = get_origin(hint)
    if origin is Annotated or origin is Union or origin is types.UnionType:
        return any(_is_list(part) for part in get_args(hint))
    return origin in (tuple, list)


def _listed(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if value.lstrip().startswith("["):
        try:
            return msgspec.json.decode(value)
        except msgspec.DecodeError:
            pass
    return [value]

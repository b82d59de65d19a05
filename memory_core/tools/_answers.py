"""What tools say in their answers, and its bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

import msgspec

from memory_core import limits
from memory_core.domain import recalled

#: Room in an answer beside the text of one page.
ROOM_CHARS = 4_000
NOTICE = recalled.NOTICE


def trimmed(answer: Mapping[str, Any], shape: type[Any]) -> dict[str, Any]:
    """The answer as plain JSON values; what is empty and may be left out (None, an empty list) is."""
    optional = {
        field.name
        for field in fields(shape)
        if field.default is not MISSING or field.default_factory is not MISSING
    }
    plain = msgspec.to_builtins(answer, str_keys=True)
    return {
        key: _without_none(value)
        for key, value in plain.items()
        if not (key in optional and (value is None or value in ([], {})))
    }


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(item) for key, item in value.items() if item is not None}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, list):
        return [_without_none(item) for item in value]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return value


def clamped(limit: int) -> int:
    return min(max(limit, 1), limits.RESULTS_MAX)

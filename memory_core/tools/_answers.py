"""What tools say in their answers, and its bounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from typing import Any, TypeVar

import msgspec

from memory_core import limits
from memory_core.domain import recalled

NOTICE = recalled.NOTICE
#: Names of fields and the like, which `Room` does not see.
_FRAME_CHARS = 500
T = TypeVar("T")


class Room:
    """What is left of one answer, in characters of its JSON text: an agent's context is not to be flooded."""

    def __init__(self, chars: int = limits.ANSWER_MAX_CHARS) -> None:
        self.chars = chars - _FRAME_CHARS

    def has(self, value: Any) -> bool:
        return size(value) <= self.chars

    def spend(self, value: Any) -> None:
        self.chars -= size(value)

    def take(self, value: Any) -> bool:
        """Whether `value` still fits; it is then counted."""
        if not self.has(value):
            return False
        self.spend(value)
        return True

    def fitting(self, items: Iterable[T]) -> list[T]:
        """The first items that still fit; they are counted."""
        kept: list[T] = []
        for item in items:
            if not self.take(item):
                break
            kept.append(item)
        return kept


def size(value: Any) -> int:
    """Characters of a value's JSON text with the comma behind it."""
    return len(msgspec.json.encode(value).decode()) + 1


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

"""Reading JSON objects strictly: every field is of its type and within its bounds, and none is there that nobody knows.

All of it raises `Invalid` with the place of what is wrong. Light: clients read with it too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar, cast

from memory_core.errors import Invalid

T = TypeVar("T")
#: A UUIDv7 as memoryd writes it: lower case, with hyphens.
UUID7: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_INTEGER_MAX: Final = 2**63 - 1


class Fields:
    """One JSON object, read field by field; `end` refuses what was not asked for."""

    def __init__(self, value: object, where: str) -> None:
        if not isinstance(value, Mapping):
            raise Invalid(f"{where}: a JSON object is expected")
        self.where = where
        self._left: dict[object, Any] = dict(cast("Mapping[object, Any]", value))

    def end(self) -> None:
        if self._left:
            unknown = sorted(str(name)[:64] for name in self._left)
            raise Invalid(f"{self.where}: unknown field {unknown[0]!r}")

    def fixed(self, name: str, expected: str | int) -> None:
        """The field must say exactly that: which record this is, and of which version."""
        found = self._take(name)
        if type(found) is not type(expected) or found != expected:
            raise self._wrong(name, f"must be {expected!r}")

    def text(self, name: str, *, at_most: int, at_least: int = 0) -> str:
        """A text of so many bytes of UTF-8."""
        return checked_text(self._take(name), f"{self.where}.{name}", at_most=at_most, at_least=at_least)

    def optional_text(self, name: str, *, at_most: int) -> str | None:
        """A text; None where the field is null or missing."""
        value = self._left.pop(name, None)
        return None if value is None else checked_text(value, f"{self.where}.{name}", at_most=at_most)

    def matching(self, name: str, pattern: re.Pattern[str], expected: str) -> str:
        value = self._take(name)
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise self._wrong(name, f"must be {expected}")
        return value

    def uuid7(self, name: str) -> str:
        return self.matching(name, UUID7, "a UUIDv7 in lower case")

    def integer(self, name: str, *, at_least: int, at_most: int = _INTEGER_MAX) -> int:
        value = self._take(name)
        if not isinstance(value, int) or isinstance(value, bool) or not at_least <= value <= at_most:
            raise self._wrong(name, f"must be a whole number from {at_least} to {at_most}")
        return value

    def boolean(self, name: str) -> bool:
        value = self._take(name)
        if not isinstance(value, bool):
            raise self._wrong(name, "must be true or false")
        return value

    def json_object(self, name: str) -> Mapping[str, Any]:
        """An object whose inside nobody here reads."""
        value = self._take(name)
        if not isinstance(value, dict):
            raise self._wrong(name, "must be a JSON object")
        return cast("Mapping[str, Any]", value)

    def names(self) -> list[str]:
        """The fields that were not read yet."""
        return [name for name in self._left if isinstance(name, str)]

    def value(self, name: str, default: object = None) -> object:
        """Whatever the field holds; the default where it is missing."""
        return self._left.pop(name, default)

    def items(self, name: str, read: Callable[[object, str], T], *, at_most: int) -> tuple[T, ...]:
        """A list, each of whose items `read` reads; empty where the field is missing."""
        value = self._left.pop(name, [])
        if not isinstance(value, list | tuple):
            raise self._wrong(name, "must be a list")
        found = cast("list[object]", value)
        if len(found) > at_most:
            raise self._wrong(name, f"at most {at_most} items")
        return tuple(read(item, f"{self.where}.{name}[{index}]") for index, item in enumerate(found))

    def _take(self, name: str) -> Any:
        if name not in self._left:
            raise Invalid(f"{self.where}: the field {name!r} is missing")
        return self._left.pop(name)

    def _wrong(self, name: str, what: str) -> Invalid:
        return Invalid(f"{self.where}.{name}: {what}")


def checked_text(value: object, where: str, *, at_most: int, at_least: int = 0) -> str:
    """`value`, if it is a text of so many bytes of UTF-8."""
    if not isinstance(value, str):
        raise Invalid(f"{where}: must be text")
    if not at_least <= utf8_bytes(value, where) <= at_most:
        raise Invalid(f"{where}: must be {at_least} to {at_most} bytes of UTF-8")
    return value


def utf8_bytes(text: str, where: str = "a text") -> int:
    """How long a text is in UTF-8; half a surrogate pair has no UTF-8."""
    if text.isascii():
        return len(text)
    try:
        return len(text.encode())
    except UnicodeEncodeError as error:
        raise Invalid(f"{where}: holds half a character (a lone surrogate)") from error


def json_text(value: object) -> str:
    """A JSON value as it is stored: compact, UTF-8 as it is, no NaN."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise Invalid(f"this is no JSON value that can be stored: {error}") from error


def parsed(text: str, where: str) -> Any:
    """The value of a stored JSON text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Invalid(f"{where}: no JSON") from error

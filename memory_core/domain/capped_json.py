"""JSON that is written piece by piece and given up as soon as it is too long; the whole text never exists then.

Used at both ends, so the standard library has to do. What is accepted is what every JSON reader takes: texts of whole
characters, finite numbers, integers that 64 bits hold, and keys that are texts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from json.encoder import encode_basestring
from typing import Any, Final, cast

from memory_core import limits
from memory_core.errors import Invalid

#: A text in quotes, with what JSON must escape escaped.
_quoted: Callable[[str], str] = encode_basestring
#: Characters of a text that are escaped at once.
_SLICE: Final = 16_384
_INT_MIN, _INT_MAX = -(2**63), 2**64 - 1


class TooLong(Invalid):
    """The JSON text is longer than it may be."""


def check_shape(
    value: Any,
    *,
    depth_max: int = limits.DURABLE_JSON_DEPTH_MAX,
    nodes_max: int = limits.DURABLE_JSON_NODES_MAX,
    text_max_bytes: int | None = None,
    what: str = "the value",
) -> None:
    """Raises `Invalid` for a value that nests deeper, holds more values (keys not counted), a longer text or key, or is no JSON.

    The value itself is the first level. Level by level, so that depth costs no stack.
    """
    level: list[Any] = [value]
    depth = nodes = 0
    while level:
        depth += 1
        nodes += len(level)
        if depth > depth_max:
            raise Invalid(f"{what} nests deeper than {depth_max} levels; send it flatter")
        below: list[Any] = []
        for item in level:
            below.extend(_children(item, text_max_bytes, what))
            if nodes + len(below) > nodes_max:
                raise Invalid(f"{what} holds more than {nodes_max} values; divide it")
        level = below


def _children(item: Any, text_max_bytes: int | None, what: str) -> list[Any]:
    if isinstance(item, Mapping):
        members = cast("Mapping[Any, Any]", item)
        for key in members:
            if not isinstance(key, str):
                raise Invalid(f"{what} has a key that is no text")
            _check_text(key, text_max_bytes, what)
        return list(members.values())
    if isinstance(item, list | tuple):
        return list(cast("list[Any]", item))
    _check_scalar(item, text_max_bytes, what)
    return []


def _check_text(text: str, max_bytes: int | None, what: str) -> None:
    size = len(text) if text.isascii() else 0
    # In slices: of a long text the bytes never exist as a whole.
    for start in range(0, 0 if size else len(text), _SLICE):
        try:
            size += len(text[start : start + _SLICE].encode())
        except UnicodeEncodeError:
            raise _half_a_character(what) from None
    if max_bytes is not None and size > max_bytes:
        raise Invalid(
            f"{what} holds a text of more than {max_bytes} bytes (UTF-8); divide it, or send it as an asset"
        )


def _check_scalar(item: Any, text_max_bytes: int | None, what: str) -> None:
    if isinstance(item, str):
        _check_text(item, text_max_bytes, what)
    elif isinstance(item, bool) or item is None:
        return
    elif isinstance(item, int):
        if not _INT_MIN <= item <= _INT_MAX:
            raise Invalid(f"{what} holds a whole number that 64 bits cannot hold; send it as a text")
    elif isinstance(item, float):
        if not math.isfinite(item):
            raise Invalid(f"{what} holds a number that is not finite; JSON has none")
    else:
        raise Invalid(f"{what} holds a {type(item).__name__}; JSON has none")


def pieces(value: Any) -> Iterator[str]:
    """The JSON text of a value whose shape was checked, in pieces of bounded size; no spaces, keys in their order."""
    stack: list[Iterator[Any] | str] = [iter((value,))]
    while stack:
        top = stack.pop()
        if isinstance(top, str):
            yield top
            continue
        try:
            item = next(top)
        except StopIteration:
            continue
        stack.append(top)
        if isinstance(item, _Written):
            yield item.text
        elif isinstance(item, str):
            yield from _string(item)
        elif isinstance(item, Mapping):
            stack.append("}")
            stack.append(_members(cast("Mapping[str, Any]", item)))
            yield "{"
        elif isinstance(item, list | tuple):
            stack.append("]")
            stack.append(_items(cast("list[Any]", item)))
            yield "["
        else:
            yield _scalar(item)


class _Written:
    """Text that is JSON already."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


_COMMA, _COLON = _Written(","), _Written(":")


def _members(value: Mapping[str, Any]) -> Iterator[Any]:
    is_first = True
    for key, item in value.items():
        if not is_first:
            yield _COMMA
        is_first = False
        yield key
        yield _COLON
        yield item


def _items(value: list[Any] | tuple[Any, ...]) -> Iterator[Any]:
    is_first = True
    for item in value:
        if not is_first:
            yield _COMMA
        is_first = False
        yield item


def _string(text: str) -> Iterator[str]:
    if len(text) <= _SLICE:
        yield _quoted(text)
        return
    yield '"'
    for start in range(0, len(text), _SLICE):
        yield _quoted(text[start : start + _SLICE])[1:-1]
    yield '"'


def _scalar(item: Any) -> str:
    if item is None:
        return "null"
    if isinstance(item, bool):
        return "true" if item else "false"
    if isinstance(item, int):
        return int.__repr__(item)
    if isinstance(item, float) and math.isfinite(item):
        return float.__repr__(item)
    raise Invalid(f"JSON has no {type(item).__name__} {item!r:.40}")


def write(value: Any, put: Callable[[bytes], object], *, max_bytes: int, what: str = "the value") -> int:
    """Give the JSON text (UTF-8) to `put` in pieces; how many bytes it has.

    Raises `TooLong` when it passes `max_bytes`, before the piece that would pass it is put, and `Invalid` for half a character.
    """
    total = 0
    for piece in pieces(value):
        # A character is one byte at least: what is too long by that is never encoded.
        if total + len(piece) > max_bytes:
            raise _too_long(what, max_bytes)
        try:
            data = piece.encode()
        except UnicodeEncodeError:
            raise _half_a_character(what) from None
        total += len(data)
        if total > max_bytes:
            raise _too_long(what, max_bytes)
        put(data)
    return total


def encode(value: Any, *, max_bytes: int, what: str = "the value") -> bytes:
    """The JSON text in UTF-8; raises as `write` and `check_shape` do."""
    check_shape(value, what=what)
    parts = bytearray()
    write(value, parts.extend, max_bytes=max_bytes, what=what)
    return bytes(parts)


def measure(value: Any, *, max_bytes: int, text_max_bytes: int | None = None, what: str = "the value") -> int:
    """How many bytes the JSON text has, keeping none of it; raises as `encode` does."""
    check_shape(value, text_max_bytes=text_max_bytes, what=what)
    return write(value, lambda _: None, max_bytes=max_bytes, what=what)


def _half_a_character(what: str) -> Invalid:
    return Invalid(f"{what} holds half a character (a lone surrogate)")


def _too_long(what: str, max_bytes: int) -> TooLong:
    return TooLong(f"{what} has more than {max_bytes} bytes as JSON; divide it, or send less")

"""Reading a request's body: bounded while it is read, one strict JSON dialect, errors that say what to change.

The dialect: UTF-8 (one byte order mark is skipped), no NaN or infinity, numbers that a double or a
64-bit integer can hold or long integers up to the parser's limit, nesting up to `JSON_DEPTH_MAX`.
Of a key that comes twice the last value counts, everywhere: what is hashed and stored is the parsed value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from flask import Request, request
from werkzeug.exceptions import RequestEntityTooLarge, UnsupportedMediaType

from memory_core import limits
from memory_core.errors import Invalid

#: For Flask: a body of unknown length is cut there without an error, so one byte more than the limit is
#: read, and its presence is the error.
READ_MAX_BYTES = limits.REQUEST_BODY_MAX_BYTES + 1

_BOM = b"\xef\xbb\xbf"
#: A JSON string with its escapes, or what would be one if the body did not end: it always matches, so it is looked for once.
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+\\?(?:"|\Z)', re.DOTALL)
#: One escape of a JSON string: an escaped backslash, a whole surrogate pair, or half of one.
_ESCAPES = re.compile(
    rb"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)
_HALF_A_PAIR = 6
_JSON_TYPES = ("", "application/json", "text/json", "text/plain", "application/x-www-form-urlencoded")


def read_body(request: Request) -> bytes:
    """The body's bytes. Stops reading at `REQUEST_BODY_MAX_BYTES` (413), whatever the length header says."""
    if request.content_encoding:
        raise UnsupportedMediaType("Send the body as it is, without a Content-Encoding.")
    # curl -d says that it is a form; real multipart forms are not read at all.
    if request.mimetype not in _JSON_TYPES and not request.mimetype.endswith("+json"):
        raise UnsupportedMediaType("Send JSON with Content-Type: application/json.")
    length = request.content_length
    if length is not None and length > limits.REQUEST_BODY_MAX_BYTES:
        raise RequestEntityTooLarge
    body = request.get_data(cache=False, parse_form_data=False)
    if len(body) > limits.REQUEST_BODY_MAX_BYTES:
        raise RequestEntityTooLarge
    if length is not None and len(body) < length:
        raise Invalid("the body ended before its Content-Length; send it again")
    return body


def parse_json(body: bytes, depth_max: int = limits.JSON_DEPTH_MAX) -> Any:
    """The value of a JSON text. Raises `Invalid`, never anything else."""
    if body.startswith(_BOM):
        body = body[len(_BOM) :]
    if not body.strip():
        raise Invalid("the body is empty; send a JSON object")
    if body.count(b"[") + body.count(b"{") > limits.JSON_CONTAINERS_MAX:
        _check_containers(body)
    try:
        value = _decoded(body)
    except RecursionError:
        raise _too_deep(depth_max) from None
    # Cheap and nearly always enough: so few brackets cannot nest deeper.
    if body.count(b"[") + body.count(b"{") > depth_max:
        _check_depth(value, depth_max)
    return value


def read_as(wanted: type[Any], max_bytes: int, depth_max: int = limits.JSON_DEPTH_MAX) -> Any:
    """The body of this request, read as `wanted`. Raises `Invalid`, or 413."""
    if (request.content_length or 0) > max_bytes:
        raise RequestEntityTooLarge(f"This route takes at most {max_bytes} bytes.")
    body = read_body(request)
    if len(body) > max_bytes:
        raise RequestEntityTooLarge(f"This route takes at most {max_bytes} bytes.")
    try:
        return msgspec.convert(parse_json(body, depth_max), type=wanted)
    except msgspec.ValidationError as error:
        raise Invalid(f"the body does not fit: {error}") from error


def holds_long_text(value: Any) -> bool:
    """Whether a text in it, or a key, would be cut by its redaction (`FIELD_REDACTED_MAX_BYTES`)."""
    if isinstance(value, str):
        # A character is at most four bytes, most are one: few texts are encoded to be measured.
        return len(value) * 4 > limits.FIELD_REDACTED_MAX_BYTES and (
            len(value.encode("utf-8", "replace")) > limits.FIELD_REDACTED_MAX_BYTES
        )
    if isinstance(value, Mapping):
        return any(holds_long_text(name) or holds_long_text(item) for name, item in value.items())
    return isinstance(value, list) and any(holds_long_text(item) for item in value)


def _decoded(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except msgspec.MsgspecError as error:
        first = error
    # Agents cut texts in the middle of an emoji; the event is worth more than the half character.
    mended = _ESCAPES.sub(_mended, body)
    if mended != body:
        try:
            return msgspec.json.decode(mended)
        except msgspec.MsgspecError as error:
            first = error
    raise Invalid(f"the body is not JSON that can be stored: {first}") from first


def without_half_characters(body: bytes) -> bytes:
    """A JSON text as a strict parser takes it: no byte order mark, and a sign of loss for half a surrogate pair."""
    body = body.removeprefix(_BOM)
    return _ESCAPES.sub(_mended, body) if b"\\u" in body else body


def _mended(match: re.Match[bytes]) -> bytes:
    text = match.group()
    return rb"\ufffd" if len(text) == _HALF_A_PAIR else text


def _check_containers(body: bytes) -> None:
    """Before anything is made of it: each list and object costs its parser some seventy bytes for two."""
    outside = _STRING.sub(b"", body)
    if outside.count(b"[") + outside.count(b"{") > limits.JSON_CONTAINERS_MAX:
        raise Invalid(
            f"the body holds more than {limits.JSON_CONTAINERS_MAX} lists and objects; send it in parts"
        )


def _check_depth(value: Any, depth_max: int) -> None:
    """Level by level, so that depth costs no stack."""
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > depth_max:
            raise _too_deep(depth_max)
        level = [
            child
            for item in level
            if isinstance(item, dict | list)
            for child in (item.values() if isinstance(item, dict) else item)
            if isinstance(child, dict | list)
        ]


def _too_deep(depth_max: int) -> Invalid:
    return Invalid(f"the body nests deeper than {depth_max} levels; send it flatter")

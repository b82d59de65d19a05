"""How payloads of agent clients are read: texts, session keys, times, tool calls. Shared by the adapters; no plugin."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, cast

from memory_core.clock import MICROSECONDS
from memory_core.domain import recalled
from memory_core.errors import Invalid
from memory_core.limits import JSON_DEPTH_MAX

Payload = Mapping[str, Any]

#: Lone surrogates cannot be encoded, NUL cuts text short in C libraries.
_UNSTORABLE = re.compile("[\ud800-\udfff\x00]")
#: Texts that look like JSON are read as JSON only up to this size; longer ones stay text.
_INNER_JSON_MAX_CHARS = 1_000_000
_LEADING_WRAPPERS = ("user_query", "USER_REQUEST")
_LEADING_NOISE = ("timestamp", "system-reminder", "environment_context")
_TEXT_KEYS = ("text", "content", "output", "message")
_ENVELOPE_TEXTS = frozenset(("output", "content", "text", "stdout", "stderr"))
_ENVELOPE_KEYS = _ENVELOPE_TEXTS | frozenset(
    [
        "metadata",
        "exit_code",
        "exitCode",
        "type",
        "isError",
        "is_error",
        "success",
        "error",
        "interrupted",
        "isImage",
        "structuredContent",
    ]
)
#: Year 1973 in milliseconds and in microseconds: below the first a number is no usable time.
_MILLISECONDS_FROM = 10**11
_MICROSECONDS_FROM = 10**14
_MICROSECONDS_UNTIL = 253_402_300_800 * MICROSECONDS


def as_payload(value: Any) -> Payload:
    """`value` as a JSON object, or `Invalid`."""
    if not isinstance(value, Mapping):
        raise Invalid(f"a hook payload is a JSON object, not {_json_type(value)}")
    return cast("Payload", value)


def clean(text: str) -> str:
    """Text that can be stored, without anything that memory itself had put before the agent."""
    return _storable(recalled.strip(text))


def _storable(text: str) -> str:
    return text if text.isascii() and "\x00" not in text else _UNSTORABLE.sub("�", text)


def text_field(payload: Payload, *names: str) -> str:
    """The first of these fields that holds text, cleaned; empty when none does."""
    for name in names:
        if (value := payload.get(name)) is not None:
            text = text_of(value)
            if text.strip():
                return text
    return ""


def optional_text(payload: Payload, *names: str) -> str | None:
    """The first of these fields that is a non-empty string (no object, no list)."""
    for name in names:
        value = payload.get(name)
        if value is not None and isinstance(value, str) and value.strip():
            return _storable(value)
    return None


def text_of(value: Any) -> str:
    """What a person would read in `value`: a string, an object, a list of blocks."""
    return clean(_text_of(value, 0)) if value is not None else ""


def opened(value: Any) -> Any:
    """A tool result that was put into a string as JSON, read; any other value, other JSON too, as it is.

    Only what looks like an envelope (`output`, `content`, …) or like a list of blocks is opened: the
    JSON that a tool printed is its output.
    """
    if (
        not isinstance(value, str)
        or value.lstrip()[:1] not in ("{", "[")
        or len(value) > _INNER_JSON_MAX_CHARS
    ):
        return value
    try:
        inner: Any = json.loads(value)
    except (ValueError, RecursionError):
        return value
    if isinstance(inner, dict):
        names = set(cast("dict[str, Any]", inner))
        return cast("Payload", inner) if names <= _ENVELOPE_KEYS and names & _ENVELOPE_TEXTS else value
    blocks = cast("list[Any]", inner)
    return (
        blocks if blocks and all(isinstance(block, dict) and "type" in block for block in blocks) else value
    )


def _text_of(value: Any, depth: int) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or value is None:
        return "" if value is None else str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    if depth >= JSON_DEPTH_MAX:
        return "…"
    if isinstance(value, Mapping):
        return _text_of_object(cast("Payload", value), depth + 1)
    if isinstance(value, list | tuple):
        parts = [_text_of(item, depth + 1) for item in cast("list[Any]", value)]
        return "\n".join(part for part in parts if part)
    return str(value)


def _text_of_object(value: Payload, depth: int) -> str:
    streams = [value[name] for name in ("stdout", "stderr") if isinstance(value.get(name), str)]
    if streams:
        return "\n".join(stream for stream in streams if stream)
    file = value.get("file")
    if isinstance(file, Mapping) and isinstance(cast("Payload", file).get("content"), str):
        return str(cast("Payload", file)["content"])
    for name in _TEXT_KEYS:
        inner = value.get(name)
        if inner is not None and not isinstance(inner, bool | int | float):
            return _text_of(inner, depth)
    try:
        return json.dumps(value, ensure_ascii=False, default=str, separators=(", ", ": "))
    except (ValueError, RecursionError):
        return "…"


def prompt_of(payload: Payload, *names: str) -> str:
    """A prompt without what the client wrapped around it (`<user_query>`, `<timestamp>`, …)."""
    return unwrap(text_field(payload, *(names or ("prompt", "message", "text"))))


def unwrap(text: str) -> str:
    """Only wrappers at the very beginning count: the same words inside a prompt are the user's."""
    text = text.strip()
    while True:
        noise = next((tag for tag in _LEADING_NOISE if text.startswith(f"<{tag}>")), None)
        if noise is None:
            break
        end = text.find(f"</{noise}>")
        if end < 0:
            break
        text = text[end + len(noise) + 3 :].strip()
    for tag in _LEADING_WRAPPERS:
        if text.startswith(f"<{tag}>"):
            inner, closing, after = text[len(tag) + 2 :].partition(f"</{tag}>")
            text = inner.strip() if closing and not after.strip() else f"{inner}{after}".strip()
    return text


def first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def event_name(payload: Payload, query: Mapping[str, str], *names: str) -> str:
    """The vendor's event name: the body's, else the query's."""
    name = optional_text(payload, *(names or ("hook_event_name", "hookEventName", "event")))
    return name or query.get("event") or query.get("source_event") or ""


def folded(name: str) -> str:
    """An event name for comparing: `PreToolUse`, `pre-tool-use` and `pre_tool_use` are one."""
    return name.replace("-", "").replace("_", "").lower()


def session_key(payload: Payload, query: Mapping[str, str], *names: str) -> str:
    """The vendor's session id: the body's, else the query's; `Invalid` when there is none."""
    for name in names or ("session_id", "sessionId"):
        value = payload.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        if isinstance(value, str) and value.strip():
            return _storable(value.strip())
    if (from_query := query.get("session_id", "").strip()) != "":
        return from_query
    raise Invalid("no session id in the payload (`session_id`) nor in the hook's URL")


def cwd_of(payload: Payload, query: Mapping[str, str]) -> str | None:
    return optional_text(payload, "cwd", "working_dir", "directory") or query.get("cwd") or None


def occurred_at(payload: Payload, query: Mapping[str, str]) -> int | None:
    """The client's own time as UTC microseconds: the body's `timestamp`, else the query's `occurred_at`."""
    for value in (payload.get("timestamp"), query.get("occurred_at")):
        if value is not None:
            try:
                return microseconds(value)
            except Invalid:
                continue
    return None


def microseconds(value: Any) -> int:
    """RFC 3339 text, or milliseconds or microseconds since the epoch (number or digits); else `Invalid`."""
    number = _number(value)
    if number is not None:
        return _microseconds_of_number(number)
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value.strip())
        except ValueError:
            moment = None
        if moment is not None and moment.tzinfo is not None:
            return round(moment.astimezone(UTC).timestamp() * MICROSECONDS)
    raise Invalid("a time is RFC 3339 text with an offset, or milliseconds or microseconds since 1970")


def _microseconds_of_number(number: float) -> int:
    if _MILLISECONDS_FROM <= number < _MICROSECONDS_FROM:
        return round(number * 1000)
    if _MICROSECONDS_FROM <= number < _MICROSECONDS_UNTIL:
        return round(number)
    raise Invalid("a numeric time is milliseconds or microseconds since 1970")


def _number(value: Any) -> float | int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit() and len(value) < 20:
        return int(value)
    return None


def extension(query: Mapping[str, str]) -> str | None:
    return query.get("extension") or None


def one_of(value: str, known: Iterable[str], what: str) -> str:
    """`value` if it is known, else `Invalid` that names what there is."""
    names = sorted(known)
    if value in names:
        return value
    raise Invalid(f"unknown {what} {value[:64]!r}; known are: {', '.join(names)}")


def _json_type(value: Any) -> str:
    names = {list: "a list", str: "a string", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(cast("type[Any]", type(value)), "null" if value is None else "that")

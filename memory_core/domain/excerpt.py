"""What a transcript says, one utterance at a time, as far as summaries and knowledge are made of it.

Reads the payloads of events of a durable session. Stored text is data from many hands: what does not have the shape that
is expected is left out, never an error.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, cast

from memory_core import limits
from memory_core.domain import recalled
from memory_core.domain.capture import cut_bytes, cut_chars, first_line
from memory_core.domain.tool_input import named_paths

_ELLIPSIS = "\n…\n"
_COMMAND_FIELDS = ("command", "cmd", "query", "pattern", "url")


class Voice(StrEnum):
    """Who or what speaks."""

    #: What an earlier compaction left of everything before.
    SUMMARY = "summary"
    PROMPT = "prompt"
    ANSWER = "answer"
    CALL = "call"
    RESULT = "result"
    ERROR = "error"


@dataclass(frozen=True, kw_only=True)
class Excerpt:
    """One utterance: its text without recalled text, cut to what its voice may have."""

    voice: Voice
    #: Of the event that it comes from.
    sequence: int
    text: str
    #: Of a call or a result.
    tool: str = ""
    #: Of a result: the first line of what its call was given.
    about: str = ""
    #: Files that a call names.
    paths: tuple[str, ...] = ()
    is_error: bool = False
    #: Whether the event says more than `text`.
    is_cut: bool = False

    @property
    def size_bytes(self) -> int:
        """What it costs to show: its texts in UTF-8 and a little for the rest."""
        return _RECORD_BYTES + sum(len(text.encode()) for text in (self.text, self.about, *self.paths))


#: The names of the fields of one excerpt, its numbers and its tool.
_RECORD_BYTES: Final = 96
_MAX_BYTES: Final[Mapping[Voice, int]] = {
    Voice.SUMMARY: limits.SUMMARY_BY_MODEL_MAX_BYTES,
    Voice.PROMPT: limits.EXCERPT_TEXT_MAX_BYTES,
    Voice.ANSWER: limits.EXCERPT_TEXT_MAX_BYTES,
    Voice.CALL: limits.EXCERPT_CALL_MAX_BYTES,
    Voice.RESULT: limits.EXCERPT_RESULT_MAX_BYTES,
    Voice.ERROR: limits.EXCERPT_RESULT_MAX_BYTES,
}


class TranscriptReader:
    """Reads the events of one session in their order: a result is told by its call."""

    def __init__(self) -> None:
        #: Of each call without a result: its tool, and what it was given.
        self._calls: dict[str, tuple[str, str]] = {}
        self._failed: set[str] = set()

    def read(self, sequence: int, kind: str, payload_json: str) -> list[Excerpt]:
        """What one event says; empty for kinds and shapes that say nothing."""
        try:
            payload: Any = json.loads(payload_json)
        except (ValueError, RecursionError):
            return []
        if not isinstance(payload, dict):
            return []
        fields = cast("dict[str, Any]", payload)
        match kind:
            case "user_message":
                return _told(Voice.PROMPT, sequence, _text_of(fields.get("content")))
            case "assistant_message" | "tool_call":
                return self._spoken(sequence, fields)
            case "tool_result":
                return self._returned(sequence, fields)
            case "audit":
                self._note(fields.get("event"))
                return []
            case "summary":
                return _told(Voice.SUMMARY, sequence, _summary_of(fields.get("summary")))
            case "error":
                return _failed_turn(sequence, fields)
            case _:
                return []

    def _spoken(self, sequence: int, message: Mapping[str, Any]) -> list[Excerpt]:
        found = _told(Voice.ANSWER, sequence, _text_of(message.get("content")))
        calls = message.get("tool_calls")
        if isinstance(calls, list):
            for call in cast("list[Any]", calls):
                if isinstance(call, dict):
                    found.append(self._called(sequence, cast("dict[str, Any]", call)))
        return found

    def _called(self, sequence: int, call: Mapping[str, Any]) -> Excerpt:
        tool = _tool_name(call.get("name"))
        arguments = call.get("arguments")
        given = cast("dict[str, Any]", arguments) if isinstance(arguments, dict) else {}
        text, is_cut = _cut(Voice.CALL, _what_of(given, arguments))
        call_id = call.get("id")
        if isinstance(call_id, str) and len(self._calls) < limits.EXCERPT_OPEN_CALLS_MAX:
            about = cut_chars(first_line(text), limits.EXCERPT_ABOUT_MAX_CHARS)
            self._calls[call_id] = (tool, about)
        paths = tuple(
            cut_bytes(path, limits.PATH_MAX_BYTES)
            for path in named_paths(tool, given)
            if len(path) <= limits.PATH_MAX_BYTES // 4
        )
        return Excerpt(
            voice=Voice.CALL,
            sequence=sequence,
            text=text,
            tool=tool,
            paths=paths[: limits.EXCERPT_PATHS_MAX],
            is_cut=is_cut,
        )

    def _returned(self, sequence: int, message: Mapping[str, Any]) -> list[Excerpt]:
        call_id = message.get("tool_call_id")
        key = call_id if isinstance(call_id, str) else ""
        is_error = key in self._failed or message.get("is_error") is True
        self._failed.discard(key)
        tool, about = self._calls.pop(key, ("", ""))
        text = _text_of(message.get("content"))
        return _told(Voice.RESULT, sequence, text, tool=tool, about=about, is_error=is_error)

    def _note(self, event: Any) -> None:
        """Whether a tool failed stands in the audit event that comes before its result."""
        if not isinstance(event, dict):
            return
        fields = cast("dict[str, Any]", event)
        output, call_id = fields.get("output"), fields.get("call_id")
        if fields.get("type") != "tool_completed" or not isinstance(output, dict):
            return
        is_error = cast("dict[str, Any]", output).get("is_error") is True
        if is_error and isinstance(call_id, str) and len(self._failed) < limits.EXCERPT_OPEN_CALLS_MAX:
            self._failed.add(call_id)


def _told(voice: Voice, sequence: int, text: str, **more: Any) -> list[Excerpt]:
    text, is_cut = _cut(voice, text)
    return [Excerpt(voice=voice, sequence=sequence, text=text, is_cut=is_cut, **more)] if text else []


def _failed_turn(sequence: int, fields: Mapping[str, Any]) -> list[Excerpt]:
    """A turn that failed: what was asked, and why nothing came of it."""
    asked = fields.get("input")
    found: list[Excerpt] = []
    if isinstance(asked, dict):
        found += _told(Voice.PROMPT, sequence, _text_of(cast("dict[str, Any]", asked).get("content")))
    error = fields.get("error")
    return found + _told(Voice.ERROR, sequence, error if isinstance(error, str) else "", is_error=True)


def _text_of(content: Any) -> str:
    """The text of a message: its parts in their order, with a word for each that is no text."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    pieces: list[str] = []
    for part in cast("list[Any]", content):
        if isinstance(part, str):
            pieces.append(part)
        elif isinstance(part, dict):
            pieces.append(_text_of_part(cast("dict[str, Any]", part)))
    return "\n".join(piece for piece in pieces if piece)


def _text_of_part(part: Mapping[str, Any]) -> str:
    data = part.get("data", part.get("text"))
    if isinstance(data, str):
        return data
    if isinstance(data, dict):
        kind = cast("dict[str, Any]", data).get("kind")
        return f"[{kind}]" if isinstance(kind, str) and kind.isalpha() else ""
    return ""


def _summary_of(value: Any) -> str:
    if isinstance(value, dict):
        value = cast("dict[str, Any]", value).get("text", cast("Any", value))
    return value if isinstance(value, str) else _as_json(value)


def _what_of(given: Mapping[str, Any], arguments: Any) -> str:
    """The command or query of a call, else all of its arguments."""
    for name in _COMMAND_FIELDS:
        value = given.get(name)
        if isinstance(value, str) and value.strip():
            return value
    return _as_json(arguments) if arguments else ""


def _as_json(value: Any) -> str:
    return "" if value is None else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _tool_name(value: Any) -> str:
    name = first_line(value) if isinstance(value, str) else ""
    return name[: limits.EXCERPT_TOOL_MAX_CHARS] or "unknown"


def _cut(voice: Voice, text: str) -> tuple[str, bool]:
    """The text that is kept, and whether that is not all. A tool says at its end what came of it."""
    bare = recalled.strip(text).strip()
    most = _MAX_BYTES[voice]
    whole = cut_bytes(bare, max(len(bare) * 4, most))
    if len(whole.encode()) <= most:
        return whole, False
    if voice is not Voice.RESULT:
        return cut_bytes(whole, most), True
    data = whole.encode()
    half = (most - len(_ELLIPSIS.encode())) // 2
    head, tail = data[:half].decode(errors="ignore"), data[-half:].decode(errors="ignore")
    return head + _ELLIPSIS + tail, True

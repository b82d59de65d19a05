"""Transcripts for tests: what was said, as excerpts or as events of a session."""

from __future__ import annotations

import json
from typing import Any

from memory_core.domain.excerpt import Excerpt, TranscriptReader, Voice


def message(
    text: str, *, calls: list[dict[str, Any]] | None = None, answers: str | None = None
) -> dict[str, Any]:
    """A payload of a message, of whatever role."""
    return {
        "record": "durable_message",
        "version": 1,
        "content": [{"type": "text", "data": text}] if text else [],
        "tool_calls": calls or [],
        "tool_call_id": answers,
        "reasoning": None,
    }


def call(call_id: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"id": call_id, "name": name, "arguments": arguments}


def completed(call_id: str, *, is_error: bool = False) -> dict[str, Any]:
    """The audit event of a tool that came to its end."""
    output = {"content": "…", "is_error": is_error}
    event = {"type": "tool_completed", "call_id": call_id, "tool_name": "x", "output": output}
    return {"record": "agent_event", "version": 1, "ordinal": 0, "event": event}


def read(*events: tuple[str, Any]) -> list[Excerpt]:
    """The excerpts of events, each a kind and its payload."""
    reader = TranscriptReader()
    return [
        excerpt
        for at, (kind, payload) in enumerate(events, start=1)
        for excerpt in reader.read(at, kind, json.dumps(payload))
    ]


def prompt(text: str, at: int = 1) -> Excerpt:
    return Excerpt(voice=Voice.PROMPT, sequence=at, text=text)


def answer(text: str, at: int = 2) -> Excerpt:
    return Excerpt(voice=Voice.ANSWER, sequence=at, text=text)


def result(text: str, *, tool: str = "bash", about: str = "", is_error: bool = False, at: int = 3) -> Excerpt:
    return Excerpt(voice=Voice.RESULT, sequence=at, text=text, tool=tool, about=about, is_error=is_error)

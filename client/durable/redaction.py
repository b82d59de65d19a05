"""What a session sends is redacted here first, with the rules that client and server share."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from memory_core.domain import agent_message
from memory_core.domain.agent_message import Message, Role, Text, ToolCall
from memory_core.errors import Invalid
from memory_core.redaction import client as redactor

#: A JSON value without secrets.
Redact = Callable[[Any], Any]

_TAG = re.compile(r"(\[REDACTED:[a-z0-9_]{1,40}):[0-9a-f]{4}\]")
#: A tool's message is never empty.
_NOTHING_LEFT = "[REDACTED]"


def redact_with(key: bytes) -> Redact:
    """`key` is the client's own marker key."""
    return lambda value: redactor.redact_json(value, key).value


def settled(value: Any, redact: Redact) -> Any:
    """Redacted in such a way that the same value always gives the same one: what is compared must not depend on a key."""
    return _untagged(redact(value))


def redact_message(message: Message, redact: Redact) -> Message:
    """The message without secrets in its texts, its reasoning and its calls' arguments."""
    texts = [part.data for part in message.content if isinstance(part, Text)]
    given = {
        "content": texts,
        "reasoning": message.reasoning,
        "calls": [dict(call.arguments) for call in message.tool_calls],
    }
    found = redact(given)
    if found == given:
        return message
    left = iter(found["content"])
    return replace(
        message,
        content=tuple(
            Text(next(left) or (_NOTHING_LEFT if message.tool_call_id else ""))
            if isinstance(part, Text)
            else part
            for part in message.content
        ),
        reasoning=found["reasoning"],
        tool_calls=tuple(
            ToolCall(call.id, call.name, arguments)
            for call, arguments in zip(message.tool_calls, found["calls"], strict=True)
        ),
    )


def journaled_input(message: str | Message, redact: Redact) -> Message:
    """What a turn begins with, as it is journaled. Raises `Invalid` for what no turn can begin with."""
    given = agent_message.said(Role.USER, message) if isinstance(message, str) else message
    if not given.assets and not given.text.strip():
        raise Invalid("a turn begins with some text or an asset")
    agent_message.check_input(given)
    return agent_message.check_input(redact_message(given, redact))


def _untagged(value: Any) -> Any:
    if isinstance(value, str):
        return _TAG.sub(r"\1:0000]", value)
    if isinstance(value, dict):
        return {_TAG.sub(r"\1:0000]", name): _untagged(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_untagged(item) for item in value]
    return value

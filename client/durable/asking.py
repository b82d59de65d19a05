"""Asking the model for one reply, streamed or whole, and refusing what cannot be kept."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from client.durable.calls import END, is_stream
from client.durable.errors import ModelFailed
from client.durable.model import ModelReply, ModelRequest, ReasoningDelta, RequestedCall, TextDelta
from client.durable.waiting import wait
from memory_core import limits
from memory_core.domain.agent_message import Message, Part, Role, Text, ToolCall
from memory_core.domain.json_fields import json_text, utf8_bytes
from memory_core.errors import CoreError, Invalid

if TYPE_CHECKING:
    from client.durable.turn import Turn


class ModelBudget:
    """What the model may still write in this turn."""

    def __init__(self) -> None:
        self._text = limits.MODEL_TURN_MAX_BYTES
        self._arguments = limits.TURN_TOOL_ARGUMENTS_MAX_BYTES

    def take(self, message: Message) -> None:
        self._text -= utf8_bytes(message.text) + utf8_bytes(message.reasoning or "")
        self._arguments -= sum(utf8_bytes(json_text(dict(call.arguments))) for call in message.tool_calls)
        if self._text < 0:
            raise ModelFailed(f"the model wrote more than {limits.MODEL_TURN_MAX_BYTES} bytes in one turn")
        if self._arguments < 0:
            raise ModelFailed(
                f"the arguments of one turn's calls are more than {limits.TURN_TOOL_ARGUMENTS_MAX_BYTES} bytes"
            )


def ask(turn: Turn, request: ModelRequest, on_delta: Callable[[Mapping[str, Any]], None]) -> ModelReply:
    """One reply of the model. Raises `ModelFailed`, and the reason of a cancellation as soon as there is one."""
    try:
        answer = wait(turn.calls.model(turn.model, request), turn.cancellation)
        if is_stream(answer):
            return _Stream(turn, answer, on_delta).read()
    except CoreError:
        raise
    except Exception as error:
        raise ModelFailed(f"the model failed: {type(error).__name__}: {error}"[:1000]) from error
    return _filled(answer, "", "")


class _Stream:
    def __init__(self, turn: Turn, stream: Any, on_delta: Callable[[Mapping[str, Any]], None]) -> None:
        self._turn = turn
        self._stream = stream
        self._on_delta = on_delta
        self._pieces: dict[str, list[str]] = {"text_delta": [], "reasoning_delta": []}
        self._bytes = 0

    def read(self) -> ModelReply:
        try:
            while True:
                item = wait(self._turn.calls.advance(self._stream), self._turn.cancellation)
                if isinstance(item, TextDelta):
                    self._take("text_delta", item.text)
                elif isinstance(item, ReasoningDelta):
                    self._take("reasoning_delta", item.text)
                else:
                    break
        finally:
            self._turn.calls.abandon(self._stream)
        if item is END:
            raise ModelFailed("the model's stream ended without a ModelReply")
        return _filled(item, *("".join(pieces) for pieces in self._pieces.values()))

    def _take(self, sort: str, text: str) -> None:
        self._bytes += len(text.encode("utf-8", "replace"))
        if self._bytes > limits.MODEL_TURN_MAX_BYTES:
            raise ModelFailed(f"the model wrote more than {limits.MODEL_TURN_MAX_BYTES} bytes in one round")
        self._pieces[sort].append(text)
        self._on_delta({"type": sort, "text": text})


def _filled(reply: Any, text: str, reasoning: str) -> ModelReply:
    if not isinstance(reply, ModelReply):
        raise ModelFailed(f"a model gives a ModelReply, not {type(reply).__name__}")
    return ModelReply(
        text=text if reply.text is None else reply.text,
        reasoning=(reasoning or None) if reply.reasoning is None else reply.reasoning,
        tool_calls=tuple(reply.tool_calls),
        finish_reason=reply.finish_reason,
        usage=reply.usage,
    )


def message_of(reply: ModelReply, new_id: Callable[[], str]) -> Message:
    """The reply as a message of the history; its calls get ids. Raises `ModelFailed` for what cannot be kept."""
    content: tuple[Part, ...] = (Text(reply.text),) if reply.text else ()
    try:
        return Message(
            role=Role.ASSISTANT,
            content=content,
            tool_calls=tuple(ToolCall(new_id(), call.name, _arguments(call)) for call in reply.tool_calls),
            reasoning=reply.reasoning or None,
        )
    except Invalid as error:
        raise ModelFailed(f"the model's reply cannot be kept: {error}") from error


def _arguments(call: RequestedCall) -> Mapping[str, Any]:
    """An object, also from its JSON text. Anything else is kept as it came, and fits no schema."""
    given = call.arguments
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            return {"unreadable_arguments": call.arguments}
    return dict(given) if isinstance(given, Mapping) else {"unreadable_arguments": given}

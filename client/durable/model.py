"""The model as a port: a callable that the program supplies. No vendor is known here.

A model takes a `ModelRequest` and returns a `ModelReply`, or is a generator that yields `TextDelta` and
`ReasoningDelta` and at last a `ModelReply`. For `AsyncDurableAgentSession` it may be a coroutine function or
an asynchronous generator as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from client.durable.waiting import Cancellation
from memory_core.domain.agent_message import AssetReference, Message


@dataclass(frozen=True, kw_only=True)
class RequestedCall:
    """A tool call that the model asks for."""

    name: str
    #: A JSON object; anything else becomes a result that says so.
    arguments: Any = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Tokens of one reply, as the vendor counts them."""

    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
        )

    def as_json(self) -> dict[str, int]:
        return {"input_tokens": self.input_tokens, "output_tokens": self.output_tokens}


@dataclass(frozen=True)
class TextDelta:
    """A further piece of the reply's text; shown, not kept."""

    text: str


@dataclass(frozen=True)
class ReasoningDelta:
    """A further piece of the reply's reasoning; shown, not kept."""

    text: str


@dataclass(frozen=True, kw_only=True)
class ModelReply:
    """One reply: text, tool calls, or both. A text or reasoning of None is what was streamed."""

    text: str | None = None
    tool_calls: Sequence[RequestedCall] = ()
    reasoning: str | None = None
    #: Why the model stopped, for example `stop`, `tool_calls`, `length`. None: told by whether there are calls.
    finish_reason: str | None = None
    usage: Usage = Usage()


@dataclass(frozen=True, kw_only=True)
class ModelRequest:
    """What the model is asked in one round."""

    system_prompt: str
    #: The history, the oldest first; `agent_message.payload` makes JSON of one.
    messages: Sequence[Message]
    #: The tools that are enabled now: `name`, `description`, `schema`.
    tools: Sequence[Mapping[str, Any]]
    options: Mapping[str, Any]
    #: From 1.
    round: int
    #: The bytes of an asset that a message refers to.
    read_asset: Callable[[AssetReference], bytes]
    #: A model that can be interrupted asks `cancelled.is_set()` now and then.
    cancelled: Cancellation


Model = Callable[[ModelRequest], Any]

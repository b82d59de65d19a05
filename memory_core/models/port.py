"""The port to language models and embedders: values that go in and come out, and what an implementation promises."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, Protocol

from memory_core import limits
from memory_core.domain.embedding import EmbeddingModel
from memory_core.errors import Invalid
from memory_core.models.errors import TooLong
from memory_core.models.usage import NOTHING, Usage

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    from memory_core.models.schema import Schema

    Vectors = NDArray[numpy.float32]

#: Says whether to stop. Asked before each request, in each pause and while an answer arrives; must return at once.
Cancel = Callable[[], bool]


def never() -> bool:
    """A call that nobody cancels."""
    return False


def either(first: Cancel, second: Cancel) -> Cancel:
    """A call that any of the two cancels."""
    return lambda: first() or second()


class Role(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"


class StopReason(StrEnum):
    #: The model was done.
    END = "end"
    #: `max_output_tokens` were used up; the text is cut.
    LENGTH = "length"
    #: One of `stop` came up; it is not part of the text.
    STOP = "stop"


@dataclass(frozen=True, kw_only=True)
class Message:
    role: Role
    text: str = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is asked of a model, and all the options there are: no other one can reach a provider.

    The last message is the user's. Raises `Invalid` for what no provider takes, `TooLong` past `MODEL_PROMPT_MAX_BYTES`.
    """

    messages: tuple[Message, ...]
    system: str = field(default="", repr=False)
    #: 0 means what `[models] max_output_tokens` says; never more than that.
    max_output_tokens: int = 0
    #: 0 to 1; None leaves it to the model (some take no other).
    temperature: float | None = None
    #: Texts at which the answer ends, at most four.
    stop: tuple[str, ...] = field(default=(), repr=False)
    #: The id of the prompt that it was made from; kept beside what the call cost.
    prompt: str = ""
    #: For the whole call, its tries and pauses too; 0 means what `[models] timeout_seconds` says; never more than that.
    timeout_seconds: float = 0.0

    def __post_init__(self) -> None:
        if not self.messages or self.messages[-1].role is not Role.USER:
            raise Invalid("a request needs messages, and the last one must be the user's")
        if len(self.messages) > limits.MODEL_MESSAGES_MAX:
            raise Invalid(f"a request takes at most {limits.MODEL_MESSAGES_MAX} messages")
        if any(not message.text.strip() for message in self.messages):
            raise Invalid("a message has no text")
        if len(self.stop) > limits.MODEL_STOP_SEQUENCES_MAX or any(not text.strip() for text in self.stop):
            raise Invalid(f"stop takes at most {limits.MODEL_STOP_SEQUENCES_MAX} texts, none of them blank")
        if self.temperature is not None and not 0.0 <= self.temperature <= 1.0:
            raise Invalid("temperature lies between 0 and 1")
        if self.max_output_tokens < 0:
            raise Invalid("max_output_tokens must not be negative")
        if not (math.isfinite(self.timeout_seconds) and self.timeout_seconds >= 0):
            raise Invalid("timeout_seconds must not be negative")
        try:
            size = self.prompt_bytes
        except UnicodeEncodeError:
            raise Invalid("the prompt holds half a character (a lone surrogate)") from None
        if size > limits.MODEL_PROMPT_MAX_BYTES:
            raise TooLong(f"the prompt is longer than {limits.MODEL_PROMPT_MAX_BYTES} bytes; shorten it")

    @property
    def prompt_bytes(self) -> int:
        """System text and messages, UTF-8."""
        return sum(len(text.encode()) for text in (self.system, *(message.text for message in self.messages)))


def ask(text: str, *, system: str = "", max_output_tokens: int = 0) -> Request:
    """A request of one message of the user."""
    return Request(
        messages=(Message(role=Role.USER, text=text),), system=system, max_output_tokens=max_output_tokens
    )


@dataclass(frozen=True, kw_only=True)
class Completion:
    """What a model answered: a text that is not empty."""

    text: str = field(repr=False)
    usage: Usage
    #: As the provider names what answered; may be more exact than what was asked for.
    model: str
    stop_reason: StopReason
    #: Fields in the provider's answer that its own client does not know: a sign that the interface moves.
    unknown_fields: int = 0


@dataclass(frozen=True, kw_only=True)
class StructuredCompletion:
    """An answer that fits the schema that was asked for; `usage` is of all requests that it took."""

    value: Mapping[str, Any] = field(repr=False)
    usage: Usage
    model: str
    #: 1 when the first answer did not fit and the model mended it.
    repairs: int = 0
    unknown_fields: int = 0


@dataclass(frozen=True, kw_only=True)
class Planned:
    """One request that is about to go out: what it may cost at most."""

    provider: str
    model: str
    #: An upper bound, from the bytes of the prompt.
    input_tokens: int
    output_tokens_max: int
    #: The id of the prompt, where the request has one.
    prompt: str = ""


class Meter(Protocol):
    """Who may stop a request and learns what it used. Called for each request that goes out: retries and repairs too."""

    def reserve(self, planned: Planned) -> object:
        """Before the request. Returns what `settle` is given back; raises to stop the call (nothing was sent then)."""
        ...

    def settle(self, reserved: object, usage: Usage, outcome: str) -> None:
        """After it, also when it failed. `outcome` is `ok` or the `code` of a `ProviderError`."""
        ...


class NoMeter:
    """Nobody counts."""

    def reserve(self, planned: Planned) -> object:  # noqa: ARG002
        return None

    def settle(self, reserved: object, usage: Usage, outcome: str) -> None:  # noqa: ARG002
        return None


class LanguageModel(Protocol):
    """One model of one provider. Safe to share between threads; each call blocks, at most its `timeout_seconds`."""

    @property
    def name(self) -> str:
        """The provider, as in `[models] provider`."""
        ...

    @property
    def model(self) -> str: ...

    @property
    def max_output_tokens(self) -> int:
        """The most that one answer may have."""
        ...

    @property
    def context_tokens(self) -> int:
        """How much it takes in all, prompt and answer: what `[models] context_tokens` says."""
        ...

    def complete(self, request: Request, cancel: Cancel = never) -> Completion:
        """Ask, and wait for the whole answer.

        Tried again (`MODEL_TRIES`) where a retry can help at once. Raises a `ProviderError`, or what the meter raises;
        `error.usage` says what was spent all the same. An answer that is cut at `max_output_tokens` is returned,
        with `StopReason.LENGTH`.
        """
        ...

    def complete_structured(
        self, request: Request, schema: Schema, cancel: Cancel = never
    ) -> StructuredCompletion:
        """Ask for an object that fits `schema`, by what the provider has for it.

        What comes back is checked by us. An answer that does not fit is shown to the model with its faults once; if
        that does not help, or it is cut at its limit, `BadAnswer`. Otherwise as `complete`.
        """
        ...


@dataclass(frozen=True, kw_only=True, eq=False)
class Embedding:
    """Vectors of texts, in their order."""

    #: float32, one row per text, each of length 1: their dot product is the cosine.
    vectors: Vectors = field(repr=False)
    usage: Usage
    model: str
    unknown_fields: int = 0


#: What a text is: something to be found, or a question. Models may treat these differently.
Kind = Literal["document", "query"]


class Embedder(Protocol):
    """One embedding model of one provider. Safe to share between threads."""

    @property
    def name(self) -> str:
        """The provider, as in `[models] embed_provider`."""
        ...

    @property
    def model(self) -> str: ...

    @property
    def dimensions(self) -> int:
        """How long each vector is; 0 while the provider has not told."""
        ...

    @property
    def identity(self) -> EmbeddingModel:
        """What its vectors can be compared with: those of the same."""
        ...

    def embed(self, texts: Sequence[str], kind: Kind = "document", cancel: Cancel = never) -> Embedding:
        """The vectors of up to `EMBED_TEXTS_MAX` texts, none of them blank.

        Of a text the first `EMBED_TEXT_MAX_BYTES` count. Sent in several requests where they are many; when one fails
        none is returned. Raises a `ProviderError`, what the meter raises, or `Invalid`.
        """
        ...


def most_tokens(size_bytes: int) -> int:
    """How many tokens a text of that many bytes has at most, nearly always."""
    return math.ceil(size_bytes / limits.MODEL_BYTES_PER_TOKEN_MIN)


__all__ = [
    "NOTHING",
    "Cancel",
    "Completion",
    "Embedder",
    "Embedding",
    "Kind",
    "LanguageModel",
    "Message",
    "Meter",
    "NoMeter",
    "Planned",
    "Request",
    "Role",
    "StopReason",
    "StructuredCompletion",
    "Usage",
    "ask",
    "either",
    "most_tokens",
    "never",
]

"""What each fake of a language model can do, and what all of them check."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from tests.models.server import Asked, Reply

#: Made up here, so that it can be looked for in all that comes out.
KEY = "key-" + "0123456789abcdef" * 2

#: What no vendor promises of a schema, though JSON Schema has it.
_UNPROMISED = (
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "pattern",
    "uniqueItems",
)
#: Headers that a request may have, whatever the vendor.
_PLAIN = {
    "host",
    "accept",
    "accept-encoding",
    "content-type",
    "content-length",
    "connection",
    "user-agent",
}


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A request as its vendor understands it."""

    model: str
    system: str
    #: Role (user, assistant) and text.
    messages: list[tuple[str, str]]
    max_output_tokens: int
    stop: list[str]
    temperature: float | None
    schema: Mapping[str, Any] | None


class FakeLanguageModel(Protocol):
    model: str
    #: What `temperature` becomes, where the vendor takes one.
    takes_temperature: bool

    def base_url(self, port: int) -> str: ...

    def read(self, asked: Asked) -> Seen:
        """Fails where the request is not what the vendor documents."""
        ...

    def answer(self, text: str, *, stop: str = "end", news: bool = False) -> Reply:
        """A whole answer of 30 tokens in (8 of them cached) and 12 out; `stop` is end, length or stop.

        `news`: with fields that no client knows yet.
        """
        ...

    def refusal(self) -> Reply: ...

    def failure(self, status: int, headers: Mapping[str, str] = ..., *, words: str = ...) -> Reply:
        """An error in the vendor's own envelope; `words` is its message."""
        ...

    def too_long(self) -> Reply:
        """The vendor's way to say that the prompt does not fit."""
        ...

    def failing_midway(self) -> Reply | None:
        """An answer that turns into an error of the provider's after its first words, where the vendor has that."""
        ...


def check_headers(asked: Asked, own: set[str]) -> None:
    assert asked.method == "POST"
    assert asked.headers["content-type"].startswith("application/json")
    assert asked.headers["accept-encoding"] == "identity"
    assert asked.headers["user-agent"] == "memoryd"
    assert set(asked.headers) <= _PLAIN | own, set(asked.headers) - _PLAIN - own
    assert own <= set(asked.headers)


def check_keys(body: Mapping[str, Any], required: set[str], optional: set[str] = frozenset()) -> None:  # type: ignore[assignment]
    assert set(body) >= required, f"missing: {required - set(body)}"
    assert set(body) <= required | optional, f"unknown: {set(body) - required - optional}"


def check_strict(schema: Any) -> None:
    """What vendors demand of a schema before they promise to keep it."""
    assert not set(_UNPROMISED) & set(schema), schema
    for branch in schema.get("anyOf", ()):
        check_strict(branch)
    if schema.get("type") == "object":
        assert schema["additionalProperties"] is False
        assert sorted(schema["required"]) == sorted(schema["properties"])
        for child in schema["properties"].values():
            check_strict(child)
    if schema.get("type") == "array":
        check_strict(schema["items"])

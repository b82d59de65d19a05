"""Every change of state: one file per family of writes, each with its commands and how they apply.

A command is a frozen dataclass; its `apply` runs in the writer only, takes at most 50 ms, reads before
it writes, and either returns a `Refusal` before its first write or an answer (a JSON-able dict, or
None). Any exception rolls back the whole batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar

import msgspec

from memory_core.domain.command import Refusal
from memory_core.errors import Invalid
from memory_core.registry import Registry
from memory_core.store.transaction import Transaction

Answer = Mapping[str, Any] | None
Apply = Callable[[Any, Transaction], "Answer | Refusal"]
#: Turns the JSON object of one version into that of the next.
Upcast = Callable[[dict[str, Any]], dict[str, Any]]
C = TypeVar("C")


@dataclass(frozen=True, kw_only=True)
class CommandKind:
    """A registered command: the type of its body, its version, how it applies, how older bodies are read."""

    name: str
    version: int
    body: type[Any]
    apply: Apply
    upcasts: Mapping[int, Upcast] = field(default_factory=dict[int, Upcast])

    def decode(self, body: bytes, version: int) -> Any:
        """The command in a body of that (or an older) version; `Invalid` if it does not fit."""
        try:
            if version == self.version:
                return _decoder(self.body).decode(body)
            value = msgspec.json.decode(body)
            for step in range(version, self.version):
                value = self.upcasts[step](value)
            return msgspec.convert(value, type=self.body)
        except (msgspec.MsgspecError, KeyError) as error:
            raise Invalid(f"a {self.name} command of version {version} cannot be read: {error}") from error


@cache
def _decoder(body: type[Any]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(body)


registry: Registry[CommandKind] = Registry("command")
_names: dict[type[Any], str] = {}


def command(
    body: type[C], *, name: str, version: int = 1, upcasts: Mapping[int, Upcast] | None = None
) -> Callable[[Callable[[C, Transaction], Answer | Refusal]], Callable[[C, Transaction], Answer | Refusal]]:
    """Decorator of an `apply` function: registers the command `name` whose body is `body`."""

    def register(
        apply: Callable[[C, Transaction], Answer | Refusal],
    ) -> Callable[[C, Transaction], Answer | Refusal]:
        kind = CommandKind(name=name, version=version, body=body, apply=apply, upcasts=upcasts or {})
        registry.add(name)(kind)
        _names[body] = name
        return apply

    return register


def kind_of(value: object) -> CommandKind:
    """The registered kind of a command value."""
    return registry.get(_names[type(value)])


def encode(value: object) -> bytes:
    """A command's body as it goes into the stream."""
    return msgspec.json.encode(value)

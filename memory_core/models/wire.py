"""What one vendor's file implements: one request and its answer, nothing more."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from memory_core.models.bounds import Bounds
from memory_core.models.local_files import LocalModel
from memory_core.models.port import Completion, Kind, Request, Usage, most_tokens
from memory_core.models.schema import Schema
from memory_core.registry import Registry

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

#: What a provider adds around each message.
_TOKENS_AROUND = 16

W_co = TypeVar("W_co", covariant=True)


@dataclass(frozen=True, kw_only=True)
class Access:
    """Where a vendor is reached, and as whom."""

    model: str
    #: Empty: the vendor's own.
    base_url: str = ""
    #: Empty where none is needed.
    api_key: str = field(default="", repr=False)
    #: Of an embedding model: how long its vectors are to be; 0 leaves it to the model.
    dimensions: int = 0
    #: Of a model that runs on this machine.
    local: LocalModel | None = None
    #: Where what runs on this machine is spoken to.
    run_dir: Path | None = None


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One request to a language model, its options settled."""

    request: Request
    max_output_tokens: int
    schema: Schema | None = None
    #: One of the wire's `forms`, where there is a schema.
    form: str = ""

    @property
    def input_tokens_max(self) -> int:
        """An upper bound of what it costs to send."""
        schema = len(json.dumps(dict(self.schema.json))) if self.schema else 0
        return most_tokens(self.request.prompt_bytes + schema) + _TOKENS_AROUND * (
            1 + len(self.request.messages)
        )


class LanguageWire(Protocol):
    @property
    def forms(self) -> tuple[str, ...]:
        """How the vendor can be asked for a structured answer, best first; the next is tried where one is rejected."""
        ...

    def ask(self, asked: Asked, bounds: Bounds) -> Completion:
        """Send one request and read the whole answer; no retry. Raises `ProviderError` and nothing else.

        The answer's text may be empty.
        """
        ...


@dataclass(frozen=True, kw_only=True, eq=False)
class RawVectors:
    """What a vendor answered: one row per text, of any length."""

    vectors: NDArray[numpy.float32]
    usage: Usage
    model: str
    unknown_fields: int


class EmbedWire(Protocol):
    def embed(self, texts: list[str], kind: Kind, bounds: Bounds) -> RawVectors:
        """Send one request of at most `EMBED_REQUEST_TEXTS`; no retry. Raises `ProviderError` and nothing else."""
        ...


@dataclass(frozen=True, kw_only=True)
class Vendor(Generic[W_co]):
    """One vendor as the settings know it."""

    #: Human name.
    title: str
    #: Used where the settings name none; empty where they must.
    default_model: str
    #: The extra of the `memoryd` package with the vendor's client, and the module that it brings.
    extra: str
    needs_key: bool = True
    needs_base_url: bool = False
    #: Runs on this machine: no key, no address, no price.
    is_local: bool = False
    #: Cheap, connects to nothing. The vendor's client is installed when it is called.
    connect: Callable[[Access], W_co]
    module: str


language_vendors: Registry[Vendor[LanguageWire]] = Registry("language model provider")
embedding_vendors: Registry[Vendor[EmbedWire]] = Registry("embedding provider")

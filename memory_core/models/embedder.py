"""An embedder over a vendor's wire: batches, tries, and what a vector must be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from memory_core import limits
from memory_core.clock import Clock
from memory_core.domain.embedding import EmbeddingModel
from memory_core.errors import Invalid
from memory_core.models.bounds import Bounds
from memory_core.models.errors import Malformed, ProviderError, WrongDimensions
from memory_core.models.port import (
    NOTHING,
    Cancel,
    Embedding,
    Kind,
    Meter,
    Planned,
    Usage,
    either,
    most_tokens,
    never,
)
from memory_core.models.tries import metered
from memory_core.models.wire import EmbedWire, RawVectors

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray


@dataclass
class WiredEmbedder:
    """Implements `port.Embedder`."""

    name: str
    model: str
    #: As the settings say; 0 until the first answer told.
    dimensions: int
    wire: EmbedWire = field(repr=False)
    clock: Clock = field(repr=False)
    meter: Meter = field(repr=False)
    timeout_seconds: float
    #: Put before each text, for models that are told so what it is.
    prefixes: dict[Kind, str] = field(repr=False)
    #: Ends every call, whatever else its caller watches.
    cancelled: Cancel = field(default=never, repr=False)
    #: Where the provider is reached, unless it is its own address.
    endpoint: str = ""

    @property
    def identity(self) -> EmbeddingModel:
        return EmbeddingModel(
            provider=self.name,
            endpoint=self.endpoint,
            model=self.model,
            dimensions=self.dimensions,
            document_prefix=self.prefixes["document"],
        )

    def embed(self, texts: Sequence[str], kind: Kind = "document", cancel: Cancel = never) -> Embedding:
        import numpy

        if not 1 <= len(texts) <= limits.EMBED_TEXTS_MAX:
            raise Invalid(f"between 1 and {limits.EMBED_TEXTS_MAX} texts can be embedded at once")
        shortened = [_shortened(text) for text in texts]
        if any(not text.strip() for text in shortened):
            raise Invalid("a blank text has no vector")
        bounds = Bounds(
            clock=self.clock,
            cancel=either(self.cancelled, cancel),
            deadline=self.clock.monotonic() + self.timeout_seconds,
        )
        parts: list[RawVectors] = []
        spent = NOTHING
        for batch in _batches([self.prefixes[kind] + text for text in shortened]):
            try:
                raw, used = self._answered(batch, kind, bounds)
                self._check(raw, len(batch))
            except ProviderError as error:
                error.usage = spent + error.usage
                raise
            spent = spent + used
            parts.append(raw)
        return Embedding(
            vectors=_of_length_one(numpy.concatenate([part.vectors for part in parts]), spent),
            usage=spent,
            model=parts[0].model,
            unknown_fields=sum(part.unknown_fields for part in parts),
        )

    def _answered(self, batch: list[str], kind: Kind, bounds: Bounds) -> tuple[RawVectors, Usage]:
        planned = Planned(
            provider=self.name,
            model=self.model,
            input_tokens=most_tokens(sum(len(text.encode()) for text in batch)),
            output_tokens_max=0,
        )
        return metered(
            lambda: self.wire.embed(batch, kind, bounds),
            lambda raw: raw.usage,
            planned=planned,
            meter=self.meter,
            bounds=bounds,
        )

    def _check(self, raw: RawVectors, count: int) -> None:
        """One finite row per text, as long as all others ever. Another length would not be comparable to what is stored."""
        import numpy

        shape = raw.vectors.shape
        if len(shape) != 2 or shape[0] != count or not 1 <= shape[1] <= limits.EMBED_DIMENSIONS_MAX:
            raise Malformed(usage=raw.usage)
        if self.dimensions not in (0, shape[1]):
            raise WrongDimensions(
                f"the provider sent vectors of {shape[1]} dimensions instead of {self.dimensions};"
                " check embed_model and embed_dimensions under [models]",
                usage=raw.usage,
            )
        if not bool(numpy.isfinite(raw.vectors).all()):
            raise Malformed(usage=raw.usage)
        self.dimensions = int(shape[1])


def _of_length_one(vectors: NDArray[numpy.float32], spent: Usage) -> NDArray[numpy.float32]:
    import numpy

    lengths = numpy.linalg.norm(vectors.astype(numpy.float64), axis=1, keepdims=True)
    if not bool((lengths > 0).all()):
        raise Malformed("the provider sent a vector of zeros", usage=spent)
    return (vectors / lengths).astype(numpy.float32)


def _shortened(text: str) -> str:
    return text.encode(errors="replace")[: limits.EMBED_TEXT_MAX_BYTES].decode(errors="ignore")


def _batches(texts: list[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for text in texts:
        length = len(text.encode())
        if batch and (
            len(batch) == limits.EMBED_REQUEST_TEXTS or size + length > limits.EMBED_REQUEST_MAX_BYTES
        ):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += length
    yield batch

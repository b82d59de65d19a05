"""Makes vectors of page chunks and turns, slice after slice, until the configured model has one of everything.

What has its vector is known by the digest of its text, so that a page that is written anew costs what changed of it. A text that
the model takes no vector of is noted and passed over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from memory_core import limits
from memory_core.clock import SystemClock
from memory_core.domain.chunk import digest_of, embedded_text, pieces
from memory_core.domain.command import Refusal
from memory_core.domain.embedding import EmbeddingModel
from memory_core.domain.job import Again, Done, Job
from memory_core.errors import Invalid
from memory_core.job_kind import Applied, Cancelled, JobKind, Tools, register
from memory_core.models.errors import ProviderError, Refused, Rejected, TooLong
from memory_core.models.metered import NoProvider
from memory_core.store import embedding_models, vector_index, vector_units
from memory_core.store.statement import Row
from memory_core.store.transaction import Reading, Transaction
from memory_core.store.vector_units import Unit, Waiting

if TYPE_CHECKING:
    from memory_core.models.port import Embedder

#: Errors that are about one text and not about the provider.
_OF_THE_TEXT = (Refused, TooLong, Rejected)


@dataclass(frozen=True, kw_only=True)
class Text:
    digest: bytes
    text: str = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Texts without a vector, and all units that can be found once they have theirs. `number` 0: no embedder is configured."""

    number: int
    model: EmbeddingModel | None = None
    texts: tuple[Text, ...] = ()
    units: tuple[Unit, ...] = ()
    #: Where this slice began and where it ends, in chunks and in turns.
    began: tuple[int, int] = (0, 0)
    ended: tuple[int, int] = (0, 0)
    is_last: bool = True


@dataclass(frozen=True, kw_only=True)
class Vector:
    """float32, little endian; or the code of the error why there is none."""

    digest: bytes
    vector: bytes | None = field(default=None, repr=False)
    error: str | None = None


@dataclass(frozen=True, kw_only=True)
class Embedded:
    batch_number: int
    dimensions: int
    vectors: tuple[Vector, ...]
    units: tuple[Unit, ...]
    began: tuple[int, int]
    ended: tuple[int, int]
    is_last: bool
    seconds: float


def prepare(reading: Reading, _job: Job) -> Batch:
    model = embedding_models.active(reading)
    if model is None:
        return Batch(number=0)
    return _Slice(reading, model).filled()


class _Slice:
    """As many waiting chunks, and then turns, as fit."""

    def __init__(self, reading: Reading, model: Row) -> None:
        self._reading = reading
        self._model = model
        self._texts: dict[bytes, str] = {}
        self._units: list[Unit] = []
        self._bytes = 0
        self._most = most_texts(model["dimensions"])

    def filled(self) -> Batch:
        began = (self._model["chunks_through"], self._model["turns_through"])
        last_chunk, last_turn = vector_units.last_numbers(self._reading)
        number = self._model["number"]
        until = [
            min(start + limits.EMBED_WINDOW_ROWS, last)
            for start, last in zip(began, (last_chunk, last_turn), strict=True)
        ]
        chunks = vector_units.waiting_chunks(
            self._reading, number, after=began[0], through=until[0], limit=limits.EMBED_SLICE_UNITS
        )
        chunk_end, is_whole = self._take(chunks, until[0])
        turn_end = began[1]
        if is_whole:
            turns = vector_units.waiting_turns(
                self._reading, number, after=began[1], through=until[1], limit=limits.EMBED_SLICE_UNITS
            )
            turn_end, _ = self._take(turns, until[1])
        ended = (max(chunk_end, began[0]), max(turn_end, began[1]))
        return Batch(
            number=number,
            model=embedding_models.value_of(self._model),
            texts=tuple(Text(digest=digest, text=text) for digest, text in self._texts.items()),
            units=tuple(self._units),
            began=began,
            ended=ended,
            is_last=ended[0] >= last_chunk and ended[1] >= last_turn,
        )

    def _take(self, waiting: Sequence[Waiting], until: int) -> tuple[int, bool]:
        """Up to which number all is taken, and whether that is all there was."""
        end = 0
        for unit in waiting:
            texts = dict(_texts_of(unit))
            fresh = {
                digest: text
                for digest, text in texts.items()
                if digest not in self._texts
                and not vector_units.is_known(self._reading, self._model["number"], digest)
            }
            size = sum(len(text.encode()) for text in fresh.values())
            if self._texts and (
                len(self._texts) + len(fresh) > self._most
                or self._bytes + size > limits.EMBED_SLICE_TEXT_BYTES
            ):
                return end or unit.number - 1, False
            self._texts |= fresh
            self._bytes += size
            self._units += [
                Unit(
                    is_turn=unit.is_turn,
                    number=unit.number,
                    project_number=unit.project_number,
                    piece=piece,
                    owner=unit.owner,
                    digest=digest,
                )
                for piece, digest in enumerate(texts)
            ]
            end = unit.number
        return (until, True) if len(waiting) < limits.EMBED_SLICE_UNITS else (end, False)


def most_texts(dimensions: int) -> int:
    """How many vectors of that length (0: not known yet) one slice brings back."""
    size = 4 * (dimensions or limits.EMBED_DIMENSIONS_MAX)
    return max(min(limits.EMBED_SLICE_VECTORS_BYTES // size, limits.EMBED_SLICE_TEXTS), 1)


def _texts_of(unit: Waiting) -> Iterator[tuple[bytes, str]]:
    """The texts that stand for a unit, each with its digest."""
    if unit.digest is not None:
        yield unit.digest, embedded_text(unit.title, unit.heading, unit.text)
        return
    for start, end in pieces(unit.text)[: limits.EMBED_PIECES_PER_TURN_MAX]:
        if text := unit.text[start:end].strip():
            yield digest_of(text), text


def compute(batch: Batch, tools: Tools) -> Embedded:
    """Raises `NoProvider` where this worker has another embedder than the server, and what the provider raises."""
    clock = SystemClock()
    begun = clock.monotonic()
    vectors: tuple[Vector, ...] = ()
    dimensions = batch.model.dimensions if batch.model else 0
    if batch.texts:
        embedder = _embedder(tools, batch.model)
        tools.progress(f"embeds {len(batch.texts)} texts")
        vectors = tuple(_embedded(embedder, batch.texts, tools))
        dimensions = embedder.dimensions or dimensions
    return Embedded(
        batch_number=batch.number,
        dimensions=dimensions,
        vectors=vectors,
        units=batch.units,
        began=batch.began,
        ended=batch.ended,
        is_last=batch.is_last,
        seconds=clock.monotonic() - begun,
    )


def _embedder(tools: Tools, wanted: EmbeddingModel | None) -> Embedder:
    embedder = tools.embedder
    if embedder is None:
        raise NoProvider("no embedder is configured for this worker; give it the same [models] as the server")
    own: EmbeddingModel = embedder.identity
    if wanted is None or (own.provider, own.endpoint, own.model, own.document_prefix) != (
        wanted.provider,
        wanted.endpoint,
        wanted.model,
        wanted.document_prefix,
    ):
        raise NoProvider("this worker has another embedder than the server; give it the same [models]")
    return embedder


def _embedded(embedder: Embedder, texts: Sequence[Text], tools: Tools) -> Iterator[Vector]:
    """Halves what the provider refuses, until the text that it refuses is alone."""
    if tools.cancelled():
        raise Cancelled
    try:
        made = embedder.embed([text.text for text in texts], "document").vectors
    except (*_OF_THE_TEXT, Invalid) as error:
        if len(texts) == 1:
            yield Vector(digest=texts[0].digest, error=error.code)
            return
        middle = len(texts) // 2
        halves = [*_embedded(embedder, texts[:middle], tools), *_embedded(embedder, texts[middle:], tools)]
        if isinstance(error, ProviderError) and all(vector.vector is None for vector in halves):
            # Nothing at all is taken: that is about the provider.
            raise
        yield from halves
        return
    for text, vector in zip(texts, made, strict=True):
        yield Vector(digest=text.digest, vector=vector.astype("<f4").tobytes())


def apply(output: Embedded, job: Job, tx: Transaction) -> Applied:
    model = embedding_models.active(tx)
    counts = _counted(job, output)
    if model is None:
        return Done(result=counts)
    if model["number"] != output.batch_number:
        return Again(cursor=counts)
    if refusal := _unfit(output, model):
        return refusal
    if output.dimensions and not model["dimensions"]:
        embedding_models.set_dimensions(tx, model["number"], output.dimensions)
    for vector in output.vectors:
        vector_units.keep(tx, model["number"], vector.digest, vector=vector.vector, error=vector.error)
    for unit in output.units:
        vector_units.add(tx, model["number"], unit)
    vector_index.catch_up(tx, model["number"], len(output.units) + limits.VECTOR_DUTY_ROWS // 2)
    is_last = _advance(tx, model, output)
    return Done(result=counts) if is_last else Again(cursor=counts)


def _unfit(output: Embedded, model: Row) -> Refusal | None:
    size = 4 * output.dimensions
    if any(v.vector is not None and not vector_index.is_usable(v.vector, size) for v in output.vectors):
        return Refusal(code="invalid", message="a vector is not as long as it was said to be")
    if any(v.vector is not None for v in output.vectors) and model["dimensions"] not in (
        0,
        output.dimensions,
    ):
        return Refusal(
            code="invalid",
            message="the vectors are not as long as those before; make all anew: memoryd embed --force",
        )
    return None


def _advance(tx: Transaction, model: Row, output: Embedded) -> bool:
    """Whether that was all. Where somebody began anew meanwhile, only the vectors are kept."""
    if (model["chunks_through"], model["turns_through"]) != output.began:
        return False
    units = len({(unit.is_turn, unit.number) for unit in output.units})
    rate = units / output.seconds if output.seconds > 0.05 and output.vectors else None
    if rate is not None and model["rate"]:
        rate = 0.7 * model["rate"] + 0.3 * rate
    embedding_models.advance(
        tx,
        model["number"],
        chunks_through=output.ended[0],
        turns_through=output.ended[1],
        rate=rate,
        complete_at=tx.now if output.is_last else model["complete_at"],
    )
    return output.is_last


def _counted(job: Job, output: Embedded) -> dict[str, Any]:
    before = job.cursor or {}
    failed = sum(vector.error is not None for vector in output.vectors)
    return {
        "embedded": before.get("embedded", 0) + len(output.vectors) - failed,
        "failed": before.get("failed", 0) + failed,
        "units": before.get("units", 0) + len({(u.is_turn, u.number) for u in output.units}),
    }


register(
    JobKind(
        name="embedding",
        queue="embeddings",
        input=Batch,
        output=Embedded,
        prepare=prepare,
        compute=compute,
        apply=apply,
        uses_model=True,
    )
)

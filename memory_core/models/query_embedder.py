"""The embedding of a question: within a second or so, kept for a while, and without a dead embedder being asked each time."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from memory_core import limits
from memory_core.clock import Clock
from memory_core.config import Settings
from memory_core.domain.embedding import EmbeddingModel
from memory_core.errors import CoreError, Unavailable
from memory_core.models.port import Embedder
from memory_core.models.settings import choose_embedder, read_settings

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True, eq=False)
class QueryVector:
    """Of length 1; compared with vectors of the same model only."""

    model: EmbeddingModel
    vector: NDArray[numpy.float32] = field(repr=False)


class QueryEmbedder:
    """Safe to share between threads. Raises what the embedder raises; `None` where none is configured."""

    def __init__(self, make: Callable[[], Embedder | None], clock: Clock) -> None:
        self._make = make
        self._clock = clock
        self._lock = threading.Lock()
        self._made: Embedder | None = None
        self._is_made = False
        self._kept: OrderedDict[str, QueryVector] = OrderedDict()
        self._paused_until = 0.0
        self._failure: CoreError | None = None

    @classmethod
    def configured(cls, settings: Settings, clock: Clock) -> QueryEmbedder:
        """The one of `[models]`; its calls are not metered: a question is a few tokens."""

        def make() -> Embedder | None:
            return choose_embedder(
                read_settings(settings), clock, settings=settings, timeout_seconds=limits.QUERY_EMBED_SECONDS
            )

        return cls(make, clock)

    def vector(self, text: str) -> QueryVector | None:
        """Raises a `CoreError`; for a while after one, `Unavailable` at once, without asking again."""
        text = " ".join(text[: limits.QUERY_MAX_CHARS].split())
        if not text:
            return None
        with self._lock:
            if (found := self._kept.get(text)) is not None:
                self._kept.move_to_end(text)
                return found
            if self._clock.monotonic() < self._paused_until:
                raise Unavailable(f"the embedder failed a moment ago: {self._failure}")
        try:
            made = self._embedded(text)
        except CoreError as error:
            with self._lock:
                self._failure = error
                self._paused_until = self._clock.monotonic() + limits.QUERY_EMBED_PAUSE_SECONDS
            raise
        if made is not None:
            self._keep(text, made)
        return made

    def _embedded(self, text: str) -> QueryVector | None:
        embedder = self._embedder()
        if embedder is None:
            return None
        vectors = embedder.embed([text], "query").vectors
        return QueryVector(model=embedder.identity, vector=vectors[0])

    def _embedder(self) -> Embedder | None:
        with self._lock:
            if not self._is_made:
                self._made, self._is_made = self._make(), True
            return self._made

    def _keep(self, text: str, made: QueryVector) -> None:
        with self._lock:
            self._kept[text] = made
            while len(self._kept) > limits.QUERY_EMBED_CACHE:
                self._kept.popitem(last=False)

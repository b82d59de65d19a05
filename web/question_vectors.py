"""Embeddings of questions for this process, and the vectors that it holds in memory."""

from __future__ import annotations

from memory_core.clock import Clock
from memory_core.config import Settings
from memory_core.domain.budget import Stop
from memory_core.errors import Unavailable
from memory_core.models.query_embedder import QueryEmbedder
from memory_core.models.settings import LOCAL
from memory_core.recall.vectors import QuestionVector
from memory_core.store import embedding_models, model_budget
from memory_core.store.database import Database
from memory_core.store.model_budget import EVERYWHERE
from memory_core.store.vector_matrix import VectorMatrix


class QuestionVectors:
    """Safe to share between threads."""

    def __init__(self, database: Database, clock: Clock, embedder: QueryEmbedder) -> None:
        self._database = database
        self._clock = clock
        self._embedder = embedder
        self._matrix = VectorMatrix()

    @classmethod
    def configured(cls, settings: Settings, database: Database, clock: Clock) -> QuestionVectors:
        """By `[models]`; looks at nothing yet."""
        return cls(database, clock, QueryEmbedder.configured(settings, clock))

    def vector(self, text: str) -> QuestionVector | None:
        """None where there is nothing that it could be compared with. Takes a second or two at most. Raises a `CoreError`:
        then the search does without."""
        with self._database.snapshot() as reading:
            model = embedding_models.active(reading)
            if model is None or not model["dimensions"]:
                return None
            if model["provider"] != LOCAL:
                self._check_budget(model_budget.stops(reading, self._clock.now_us()))
        made = self._embedder.vector(text)
        return None if made is None else QuestionVector(query=made, matrix=self._matrix)

    def _check_budget(self, stops: list[model_budget.Pause]) -> None:
        for stop in stops:
            if stop.scope == EVERYWHERE and not stop.kind:
                why = "paused" if stop.reason is Stop.PAUSED else "at the end of their budget"
                raise Unavailable(f"models are {why}")

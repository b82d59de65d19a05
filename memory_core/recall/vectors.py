"""Vectors as a part of search: what is near to a question, if its embedder is the one that the kept vectors are of."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from memory_core.domain.embedding import EmbeddingModel
from memory_core.errors import CoreError
from memory_core.models.query_embedder import QueryVector
from memory_core.store import embedding_models
from memory_core.store.nearest import Near, Scope, nearest
from memory_core.store.transaction import Reading
from memory_core.store.vector_matrix import VectorMatrix

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, eq=False)
class QuestionVector:
    """The embedding of a question, and where this process keeps vectors in memory."""

    query: QueryVector
    matrix: VectorMatrix = field(repr=False)


def embedded(text: str, embed: Callable[[str], QuestionVector | None]) -> tuple[QuestionVector | None, bool]:
    """The embedding of a question, and whether its embedder failed: then words answer. Asked for before a snapshot is
    opened, which must not wait for a provider; a blank question is not asked for."""
    if not text.strip():
        return None, False
    try:
        return embed(text), False
    except CoreError as error:
        logger.warning(
            "a question is answered without its embedding: %s",
            error,
            extra={"action": "question_not_embedded"},
        )
        return None, True


def near(reading: Reading, question: QuestionVector, scope: Scope, limit: int) -> list[Near]:
    """The nearest chunks and turns, best first; none where no vector of the question's model is kept: others are not comparable."""
    model = embedding_models.active(reading)
    if model is None or not _is_same(embedding_models.value_of(model), question.query.model):
        return []
    return nearest(reading, model, question.query.vector, scope, limit, question.matrix)


def _is_same(kept: EmbeddingModel, asked: EmbeddingModel) -> bool:
    return (kept.provider, kept.endpoint, kept.model, kept.document_prefix, kept.dimensions) == (
        asked.provider,
        asked.endpoint,
        asked.model,
        asked.document_prefix,
        asked.dimensions,
    )

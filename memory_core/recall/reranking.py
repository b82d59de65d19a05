"""The best hits of a search, judged once more by what is configured for it, after the snapshot is closed: it may take seconds."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from time import perf_counter

from memory_core import limits
from memory_core.domain import place
from memory_core.errors import CoreError
from memory_core.models.reranker import Passage
from memory_core.recall.search import Found, Hit, Question

logger = logging.getLogger(__name__)

#: Named in `streams_failed`, and in `timings_ms`.
RERANKER = "reranker"
#: A question and passages of some projects; a score for each, by its place. Raises a `CoreError`.
Judge = Callable[[str, Sequence[Passage], Sequence[bytes]], Sequence[float]]


def widened(question: Question) -> Question:
    """The question that also asks for what is judged; the same where that is not done: across all projects, and in the one that
    holds for every project."""
    if question.projects is None or any(
        project.name == place.GLOBAL_PROJECT for project in question.projects
    ):
        return question
    wanted = min(question.limit * limits.RERANK_PER_RESULT, limits.RERANK_CANDIDATES_MAX)
    return replace(question, judged=wanted)


def reranked(found: Found, question: Question, judge: Judge) -> None:
    """Put the hits of a widened question in the order of their scores, and cut them to its limit. A judge that fails is named, and
    the order stays."""
    passages, found.passages = found.passages, []
    if len(passages) > 1 and question.projects is not None:
        begun = perf_counter()
        try:
            scores = judge(question.text, passages, [project.id for project in question.projects])
            found.hits = _ordered(found.hits, scores, explain=question.explain)
        except CoreError as error:
            logger.warning(
                "hits keep their order: %s", error.code, extra={"action": "rerank_failed", "code": error.code}
            )
            found.streams_failed.append(RERANKER)
        else:
            found.streams_active.append(RERANKER)
        found.timings_ms[RERANKER] = round((perf_counter() - begun) * 1_000, 2)
    found.hits = found.hits[: question.limit]


def _ordered(hits: list[Hit], scores: Sequence[float], *, explain: bool) -> list[Hit]:
    """Those that were judged first, of equal ones the earlier; then the rest as it was. `score` stays that of the search."""
    places = sorted(range(len(scores)), key=lambda at: (-scores[at], at))
    judged = [
        replace(
            hits[at],
            score_details={
                **(hits[at].score_details or {}),
                "rerank": round(scores[at], 6),
                "rank_before": at + 1,
            },
        )
        if explain
        else hits[at]
        for at in places
    ]
    return judged + hits[len(scores) :]

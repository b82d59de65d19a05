"""Units by their meaning: those whose vectors are near to that of the question.

Cosines of one model lie close together, so that the share of the best says little: a score is how far a unit lies above the worst
that was found. Its weight beside that of words (1 to 1.5) has not been measured on questions of our own yet.
"""

from __future__ import annotations

from memory_core import limits
from memory_core.recall.ask import Ask, Candidate, Unit
from memory_core.recall.streams import Stream, streams
from memory_core.recall.vectors import near
from memory_core.store.nearest import Scope
from memory_core.store.transaction import Reading


def candidates(reading: Reading, ask: Ask, limit: int) -> list[Candidate]:
    """The nearest units, best first; none without the question's embedding, or where none is near."""
    if ask.vector is None:
        return []
    now = None if ask.include_expired else ask.now
    found = near(reading, ask.vector, Scope(projects=ask.projects, owner=ask.principal, now=now), limit)
    if not found:
        return []
    best, worst = found[0].similarity, min(found[-1].similarity, limits.VECTOR_SIMILARITY_MIN)
    least = max(limits.VECTOR_SIMILARITY_MIN, limits.VECTOR_SIMILARITY_SHARE_MIN * best)
    return [
        Candidate(
            unit=Unit.TURN if one.is_turn else Unit.CHUNK,
            number=one.number,
            score=(one.similarity - worst) / (best - worst),
            details={"cosine": round(one.similarity, 4), "piece": one.piece},
        )
        for one in found
        if one.similarity >= least
    ]


streams.add("vector")(Stream(candidates=candidates, weight=1.0, applies=lambda ask: ask.vector is not None))

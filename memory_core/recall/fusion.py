"""One order out of what several streams found.

Half of what a stream gives counts by rank, as in reciprocal rank fusion (Cormack, Clarke and Büttcher, 2009), half by score. With
the usual 60 for the rank's constant a weak stream drowned a strong one: 10 did no such harm (`docs/performance.md`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memory_core.recall.ask import Candidate, Unit

_RANK_CONSTANT = 10


@dataclass(kw_only=True)
class Fused:
    """A unit with what all streams say of it; `score` is from 0 to 1."""

    unit: Unit
    number: int
    score: float = 0.0
    #: By stream: rank (from 1) and what it gave.
    found: dict[str, tuple[int, Candidate]] = field(default_factory=dict[str, tuple[int, Candidate]])

    @property
    def candidate(self) -> Candidate:
        return Candidate(unit=self.unit, number=self.number, score=self.score)

    @property
    def streams(self) -> dict[str, dict[str, Any]]:
        """By stream: rank, score, and what else it says."""
        return {
            name: {"rank": rank, "score": round(candidate.score, 6), **candidate.details}
            for name, (rank, candidate) in self.found.items()
        }


def fused(found: Mapping[str, Sequence[Candidate]], weights: Mapping[str, float]) -> list[Fused]:
    """All units, best first. A stream that found nothing takes nothing away."""
    total = sum(weights[name] for name, candidates in found.items() if candidates)
    made: dict[tuple[Unit, int], Fused] = {}
    for name, candidates in found.items():
        best = candidates[0].score if candidates else 0.0
        for rank, candidate in enumerate(candidates, 1):
            one = made.get(candidate.key)
            if one is None:
                one = made[candidate.key] = Fused(unit=candidate.unit, number=candidate.number)
            by_rank = (_RANK_CONSTANT + 1) / (_RANK_CONSTANT + rank)
            by_score = candidate.score / best if best > 0 else by_rank
            one.score += weights[name] / total * (by_rank + by_score) / 2
            one.found[name] = rank, candidate
    return sorted(made.values(), key=lambda one: (-one.score, one.unit, -one.number))

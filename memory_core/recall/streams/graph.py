"""Pages that lie near those that answer: linked with them either way, or naming the same rare thing."""

from __future__ import annotations

from memory_core import limits
from memory_core.recall.ask import Ask, Candidate, Unit
from memory_core.recall.streams import Stream, streams
from memory_core.store import graph
from memory_core.store.transaction import Reading

#: Streams that give the first pages where nobody else did.
_SEEDING = ("lexical", "entity")


def candidates(reading: Reading, ask: Ask, limit: int) -> list[Candidate]:
    """What lies near the pages that other streams found (`ask.seeds`), these left out; without any, near those that words and
    names lead to."""
    if Unit.CHUNK not in ask.units:
        return []
    seeds = ask.seeds or _own_seeds(reading, ask)
    chunks = [seed.number for seed in seeds if seed.unit is Unit.CHUNK]
    rows = graph.near(
        reading,
        # The first ones count most; a rank is all that scores of several streams have in common.
        [
            (number, 1 / (rank + 1))
            for rank, number in enumerate(graph.pages_of(reading, chunks)[: limits.GRAPH_SEEDS])
        ],
        ask.projects,
        now=None if ask.include_expired else ask.now,
        limit=limit,
    )
    return [
        Candidate(
            unit=Unit.CHUNK, number=row["chunk_number"], score=row["weight"], details={"steps": row["depth"]}
        )
        for row in rows
    ]


def _own_seeds(reading: Reading, ask: Ask) -> list[Candidate]:
    found = [streams.get(name).candidates(reading, ask, limits.GRAPH_SEEDS) for name in _SEEDING]
    return [one for several in found for one in several]


streams.add("graph")(Stream(candidates=candidates, weight=0.3, is_led=True))

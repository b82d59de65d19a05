"""Parts of pages by what they name: identifiers, paths, errors, people, and what their pages declare or are called."""

from __future__ import annotations

from memory_core.domain.entities import asked_names
from memory_core.recall.ask import Ask, Candidate, Unit
from memory_core.recall.streams import Stream, streams
from memory_core.store import entities
from memory_core.store.transaction import Reading


def candidates(reading: Reading, ask: Ask, limit: int) -> list[Candidate]:
    """The pages that name something with a word that begins like one of the question, at the part that says it."""
    if Unit.CHUNK not in ask.units:
        return []
    rows = entities.candidates(
        reading,
        asked_names([term.text for term in ask.query.terms]),
        ask.projects,
        now=None if ask.include_expired else ask.now,
        limit=limit,
    )
    return [Candidate(unit=Unit.CHUNK, number=row["chunk_number"], score=row["weight"]) for row in rows]


streams.add("entity")(Stream(candidates=candidates, weight=0.5))

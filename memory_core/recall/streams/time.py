"""What is from the days that a question asks for, where it asks for nothing else: "what happened yesterday?".

A date beside other words is weighed by the stream of words, which knows what else was asked.
"""

from __future__ import annotations

from memory_core.domain.date_words import dates_in, without_dates
from memory_core.domain.stemming import stem
from memory_core.recall.ask import Ask, Candidate, Unit
from memory_core.recall.query import parse
from memory_core.recall.streams import Stream, streams
from memory_core.store import moments
from memory_core.store.transaction import Reading

#: What is asked of a day without saying what is looked for.
_OF_ANYTHING = frozenset(
    stem(word)
    for word in (
        *("happen", "happened", "anything", "everything", "something", "work", "worked", "talk", "talked"),
        *("discuss", "discussed", "say", "said", "tell", "told", "go", "went", "get", "got", "done", "new"),
        *("change", "changed", "changes", "day", "session", "sessions", "decide", "decided", "going"),
    )
)


def candidates(reading: Reading, ask: Ask, limit: int) -> list[Candidate]:
    """The newest units of those days, the newest first."""
    found: dict[tuple[Unit, int], int] = {}
    for first, behind in dates_in(ask.text, ask.now).spans(ask.now):
        if Unit.TURN in ask.units:
            rows = moments.turns(
                reading, ask.projects, first=first, behind=behind, owner=ask.principal, limit=limit
            )
            found |= {(Unit.TURN, row["number"]): row["at"] for row in rows}
        if Unit.CHUNK in ask.units:
            rows = moments.chunks(
                reading, ask.projects, first=first, behind=behind, now=ask.expired_by, limit=limit
            )
            found |= {(Unit.CHUNK, row["number"]): row["at"] for row in rows}
    newest = sorted(found, key=lambda key: (-found[key], key[0], -key[1]))[:limit]
    return [
        Candidate(unit=unit, number=number, score=1 - place / (2 * limit))
        for place, (unit, number) in enumerate(newest)
    ]


def applies(ask: Ask) -> bool:
    """Whether the question names days and nothing to look for in them."""
    if not dates_in(ask.text, ask.now).spans(ask.now):
        return False
    rest = parse(without_dates(ask.text)).terms
    return all(term.is_stop_word or stem(term.text) in _OF_ANYTHING for term in rest)


streams.add("time")(Stream(candidates=candidates, weight=2.0, applies=applies))

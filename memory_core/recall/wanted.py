"""Which units hold which words of a question: the first pass, which reads the index and no text.

The cost is bounded: of each word at most `TERM_ROWS_MAX` rows are read. A word that more rows hold tells little and is only counted
where a text is looked at anyway; where all words are like that, the newest units that hold them together are taken.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from memory_core import limits
from memory_core.domain.stemming import stem
from memory_core.recall.ask import Ask, Unit
from memory_core.recall.query import Term, either
from memory_core.store import lexical
from memory_core.store.transaction import Reading

#: A term that fewer units hold is also looked for by its parts, or as a beginning.
_SCARCE_UNITS = 10
#: What a part or a beginning counts beside the term itself.
_LOOSE_WEIGHT = 0.5


@dataclass(kw_only=True)
class Wanted:
    """One expression of a question, and where it was found."""

    expression: str
    #: As the index knows it, where it is one word; else its units are known by the index alone.
    stem: str = ""
    #: What it counts, by how rare it is.
    weight: float = 0.0
    chunks: Collection[int] = frozenset[int]()
    #: By number, with their sessions.
    turns: dict[int, bytes] = field(default_factory=dict[int, bytes])
    #: More rows hold it than were read: those that were are not used.
    is_frequent: bool = False


@dataclass(frozen=True, kw_only=True)
class FirstPass:
    wanted: list[Wanted]
    #: How many units there are to find, counted up to a bound.
    units: int

    def chunks(self, reading: Reading, *, per_page: int, most: int) -> list[int]:
        """The `most` parts of pages that hold the weightiest words, the newer first among equals; so many of each page."""
        ranked = _ranked((each.chunks, each.weight) for each in self.wanted)
        taken: Counter[int] = Counter()
        kept: list[int] = []
        for begin in range(0, len(ranked), most * 2):
            some = ranked[begin : begin + most * 2]
            pages = lexical.pages_of_chunks(reading, some)
            for number in some:
                page = pages[number]
                if taken[page] < per_page:
                    taken[page] += 1
                    kept.append(number)
                if len(kept) == most:
                    return kept
        return kept

    def turns(self) -> list[int]:
        return _ranked((each.turns, each.weight) for each in self.wanted)


def first_pass(reading: Reading, ask: Ask) -> FirstPass:
    """Look for each term of the question in the units that may be shown."""
    wanted: list[Wanted] = []
    for term in ask.query.terms:
        exact = _found(reading, ask, Wanted(expression=either(term.exact), stem=_one_word(term)))
        wanted.append(exact)
        if term.loose and len(exact.chunks) + len(exact.turns) < _SCARCE_UNITS and not exact.is_frequent:
            wanted += [_found(reading, ask, Wanted(expression=loose)) for loose in dict.fromkeys(term.loose)]
    if not any(each.chunks or each.turns for each in wanted):
        wanted += _together(reading, ask, [each for each in wanted if each.is_frequent])
    units = _count(reading, ask)
    for each in wanted:
        each.weight = _rarity(each, units) * (
            1.0 if each.stem or each.is_frequent else _own_weight(each, ask)
        )
    return FirstPass(wanted=wanted, units=units)


def _found(reading: Reading, ask: Ask, wanted: Wanted) -> Wanted:
    most = limits.TERM_ROWS_MAX
    _look(reading, ask, wanted, most + 1)
    if max(len(wanted.chunks), len(wanted.turns)) > most:
        wanted.is_frequent = True
        wanted.chunks, wanted.turns = frozenset(), {}
    return wanted


def _look(reading: Reading, ask: Ask, wanted: Wanted, limit: int, *, newest: bool = False) -> None:
    if Unit.CHUNK in ask.units:
        found = lexical.chunks_with(
            reading, wanted.expression, ask.projects, now=ask.expired_by, limit=limit, newest=newest
        )
        wanted.chunks = frozenset(found)
    if Unit.TURN in ask.units:
        wanted.turns = lexical.turns_with(
            reading, wanted.expression, ask.projects, owner=ask.principal, limit=limit, newest=newest
        )


def _together(reading: Reading, ask: Ask, frequent: Sequence[Wanted]) -> list[Wanted]:
    """The newest units that hold all of the frequent words, two of them, or one."""
    for count in sorted({len(frequent), 2, 1}, reverse=True):
        if not 0 < count <= len(frequent):
            continue
        both = Wanted(expression=" AND ".join(f"({each.expression})" for each in frequent[:count]))
        _look(reading, ask, both, limits.TERM_ROWS_MAX, newest=True)
        if both.chunks or both.turns:
            return [both]
    return []


def _count(reading: Reading, ask: Ask) -> int:
    most = limits.TERM_ROWS_MAX * 4
    units = 0
    if Unit.CHUNK in ask.units:
        units += lexical.count_chunks(reading, ask.projects, at_most=most)
    if Unit.TURN in ask.units:
        units += lexical.count_turns(reading, ask.projects, at_most=most)
    return units


def _rarity(wanted: Wanted, units: int) -> float:
    """The inverse document frequency of BM25 (Robertson and Zaragoza, 2009), never negative."""
    found = limits.TERM_ROWS_MAX if wanted.is_frequent else len(wanted.chunks) + len(wanted.turns)
    units = max(units, found)
    return math.log(1 + (units - found + 0.5) / (found + 0.5))


def _own_weight(wanted: Wanted, ask: Ask) -> float:
    is_loose = any(wanted.expression in term.loose for term in ask.query.terms)
    return _LOOSE_WEIGHT if is_loose else 1.0


def _one_word(term: Term) -> str:
    """The stem of a term that is one word; empty for phrases, parts and scripts without spaces."""
    bare = term.exact[0].strip('"')
    return stem(bare) if len(term.exact) == 1 and bare.isalnum() and bare.isascii() else ""


def _ranked(found: Iterable[tuple[Iterable[int], float]]) -> list[int]:
    scores: dict[int, float] = {}
    for numbers, weight in found:
        for number in numbers:
            scores[number] = scores.get(number, 0.0) + weight
    best = sorted(zip(scores.values(), scores.keys(), strict=True), reverse=True)
    return [number for _, number in best]

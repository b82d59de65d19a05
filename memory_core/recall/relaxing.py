"""What to ask for when not all terms are found together.

The cost of a ranked match is the number of rows that it touches, and a term that stands everywhere tells
nothing; so the terms are counted first (up to a bound, which costs a fraction of ranking them), and only
the rare ones are asked for. Measured on 10,000 pages: six frequent terms joined by OR took 22 ms, counting
them 0.7 ms.
"""

from __future__ import annotations

from collections.abc import Callable

from memory_core.recall.query import Query, Term, either

#: A term found more often than this is not asked for on its own.
_RARE_ROWS = 400
#: A term found less often is also looked for by its stem.
_SCARCE_ROWS = 10
#: Of terms that are all frequent, so many are asked for together.
_FREQUENT_TOGETHER = 2

#: The rows that match an expression, counted up to a bound.
Count = Callable[[str, int], int]


def relaxed(query: Query, count: Count) -> str | None:
    """An expression that some of the terms satisfy; None where it would find nothing that all of them do not."""
    rare: list[str] = []
    frequent: list[str] = []
    for term in query.terms:
        for expression in _forms(term, count):
            found = count(expression, _RARE_ROWS + 1)
            if found > _RARE_ROWS:
                frequent.append(expression)
            elif found:
                rare.append(expression)
    if rare:
        return " OR ".join(dict.fromkeys(rare))
    if len(frequent) > _FREQUENT_TOGETHER:
        return " AND ".join(frequent[:_FREQUENT_TOGETHER])
    return frequent[0] if frequent else None


def _forms(term: Term, count: Count) -> tuple[str, ...]:
    exact = either(term.exact)
    if term.loose and count(exact, _SCARCE_ROWS) < _SCARCE_ROWS:
        return (exact, *term.loose)
    return (exact,)

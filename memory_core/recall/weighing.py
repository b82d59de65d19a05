"""How well a text answers: BM25 over the words of a question, with what was said around it.

The formula is BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009) with a floor under the length: below a
few sentences, length says nothing. What was measured of each number is in `docs/performance.md`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from memory_core.domain.stemming import beginning, stem, without_accents
from memory_core.recall.wanted import Wanted

_K1, _B = 1.2, 0.75
#: Shorter texts are weighed as if they were so long.
_LENGTH_FLOOR_CHARS = 340
#: Two words of the question that stand side by side, and such that stand close together, beside one word.
_PAIR_WEIGHT, _NEAR_WEIGHT = 0.5, 0.5
_NEAR_CHARS = 60
_REST = re.compile(r"[^\W_]*(?:[\u0300-\u036f]+[^\W_]*)*")


@dataclass(frozen=True, kw_only=True)
class Text:
    """What is weighed of a unit: where each wanted stem stands in it (first and last character + 1)."""

    places: Mapping[str, Sequence[tuple[int, int]]]
    #: As it was looked through.
    plain: str

    @property
    def chars(self) -> int:
        return len(self.plain)

    def count(self, wanted: Wanted) -> int:
        return len(self.places.get(wanted.stem, ())) if wanted.stem else 0


def read(text: str, stems: Iterable[str]) -> Text:
    """The places of these stems in a text.

    Cutting it into words and taking the stem of each took twenty times as long: a word begins as its stem does, but for the last letter.
    """
    plain = without_accents(text.lower())
    places: dict[str, list[tuple[int, int]]] = {}
    for wanted in stems:
        prefix = beginning(wanted)
        start = plain.find(prefix)
        while start >= 0:
            if not (start and plain[start - 1].isalnum()):
                found = _REST.match(plain, start)
                end = found.end() if found else start + len(prefix)
                if stem(plain[start:end]) == wanted:
                    places.setdefault(wanted, []).append((start, end))
            start = plain.find(prefix, start + 1)
    return Text(places=places, plain=plain)


def mean_length(texts: Sequence[Text]) -> float:
    return sum(max(text.chars, _LENGTH_FLOOR_CHARS) for text in texts) / len(texts) if texts else 1.0


def damping(text: Text, mean_chars: float) -> float:
    """What `saturated` takes: how little one occurrence says in a text of that length."""
    return _K1 * (1 - _B + _B * max(text.chars, _LENGTH_FLOOR_CHARS) / mean_chars)


def saturated(count: float, damped: float) -> float:
    """How much `count` occurrences say; 1 for one in a text of mean length."""
    return count * (_K1 + 1) / (count + damped) if count else 0.0


def pairs_in(text: Text, pairs: Sequence[tuple[str, str]]) -> tuple[list[int], list[int]]:
    """Of each pair of stems how often one stands right behind the other, and how often they stand close together."""
    side_by_side = [0] * len(pairs)
    close = [0] * len(pairs)
    for index, (first, second) in enumerate(pairs):
        ones, others = text.places.get(first), text.places.get(second)
        if not ones or not others:
            continue
        for one in ones:
            for other in others:
                if abs(other[0] - one[0]) <= _NEAR_CHARS:
                    close[index] += 1
                    between = text.plain[one[1] : other[0]]
                    side_by_side[index] += other[0] >= one[1] and not any(map(str.isalnum, between))
    return side_by_side, close


def pair_weights() -> tuple[float, float]:
    return _PAIR_WEIGHT, _NEAR_WEIGHT

"""Units by their words: parts of pages, and turns with what was said around them.

First the index says which units hold which words, then the best of them are read and weighed. A turn is also worth what the two
before and the two behind it say (most behind a question: there stands its answer), what its session says as a whole, who spoke, and
how near it is to a date of the question.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from memory_core import limits
from memory_core.domain.date_words import Dates, dates_in
from memory_core.domain.stemming import stem, words_with_places
from memory_core.recall import weighing
from memory_core.recall.ask import Ask, Candidate, Unit
from memory_core.recall.streams import Stream, streams
from memory_core.recall.wanted import FirstPass, Wanted, first_pass
from memory_core.store import lexical
from memory_core.store.statement import Row
from memory_core.store.transaction import Reading

#: What a turn takes over from the one beside it and from the next but one; twice from a question that it follows.
_BESIDE = (0.4, 0.2)
_BEHIND_A_QUESTION = 2.0
_USER, _FIRST_PERSON, _AGENT_ASKED, _NAMED = 1.3, 2.0, 2.0, 1.3
#: A name in a turn that somebody else speaks is mostly an address.
_MENTIONED = 0.3
_SESSION_WEIGHT, _SESSION_K1 = 0.3, 1.2
_DATE_WEIGHT = 1.0
#: Parts of one page that are read: one of them is shown.
_PER_PAGE = 3
_TITLE_COUNT, _HEADING_COUNT = 2, 1
#: Of the best candidate; what is worth less shares only common words with the question. The best turn of a session that has no other
#: one among them may be worth less: a question may want several sessions, and say little of each.
_WORTH_MIN, _SESSION_WORTH_MIN = 0.2, 0.05
_I = re.compile(r"\b(?:i|my|me|mine|myself|we|our|us|i'm|i've)\b", re.IGNORECASE)
_YOU_SAID = re.compile(
    r"\b(?:did|have|had|were)\s+you\s+(?:recommend|suggest|say|tell|told|explain|advise|give|given|mention|propose|provide)"
    r"|\byou\s+(?:recommended|suggested|told|said|gave|advised|proposed|mentioned|explained)",
    re.IGNORECASE,
)


def candidates(reading: Reading, ask: Ask, limit: int) -> list[Candidate]:
    """The units that hold words of the question, best first."""
    if not ask.query.terms:
        return []
    first = first_pass(reading, ask)
    pairs = _pairs(ask)
    stems = frozenset((*(each.stem for each in first.wanted), *(stem for pair in pairs for stem in pair))) - {
        ""
    }
    weighed = _Weighed(ask=ask, first=first, pairs=pairs, stems=stems, most=limit)
    weighed.read_chunks(reading)
    weighed.read_turns(reading)
    return weighed.candidates()


def _pairs(ask: Ask) -> list[tuple[str, str]]:
    telling = [word for word in ask.query.sequence if word]
    return list(dict.fromkeys(pair for pair in pairwise(telling) if pair[0] != pair[1]))


class _Weighed:
    """The candidates of one question while they are weighed."""

    def __init__(
        self, *, ask: Ask, first: FirstPass, pairs: list[tuple[str, str]], stems: frozenset[str], most: int
    ) -> None:
        self.most = most
        self.ask, self.first, self.pairs, self.stems = ask, first, pairs, stems
        self.dates: Dates = dates_in(ask.text, ask.now)
        self.chunks: dict[int, tuple[Row, weighing.Text]] = {}
        self.facts: dict[int, Row] = {}
        self.texts: dict[int, weighing.Text] = {}
        #: Of each turn the one before it, the one before that, the one behind it and the one behind that.
        self.beside: dict[int, list[int | None]] = {}
        self.mean = 1.0
        self.is_mine = _I.search(ask.text) is not None
        self.is_yours = _YOU_SAID.search(ask.text) is not None
        self.names: dict[str, frozenset[str]] = {}
        self.pair_counts: dict[int, tuple[list[int], list[int]]] = {}
        self.titles: dict[str, weighing.Text] = {}
        self.name_stems: frozenset[str] = frozenset()

    def read_chunks(self, reading: Reading) -> None:
        most = max(self.most, limits.CHUNKS_WEIGHED_MIN)
        wanted = self.first.chunks(reading, per_page=_PER_PAGE, most=most)
        if wanted:
            rows = lexical.texts_of_chunks(reading, wanted)
            self.chunks = {n: (row, weighing.read(row["text"], self.stems)) for n, row in rows.items()}

    def read_turns(self, reading: Reading) -> None:
        best = self.first.turns()[: max(self.most * limits.TURNS_WEIGHED_PER_UNIT, limits.TURNS_WEIGHED_MIN)]
        if not best:
            return
        self._set_beside(lexical.neighbours(reading, best))
        self.facts = lexical.facts_of_turns(reading, self.beside)
        texts = lexical.texts_of_turns(reading, best)
        self.texts = {number: weighing.read(text, self.stems) for number, text in texts.items()}
        for name in {row["speaker_name"] for row in self.facts.values() if row["speaker_name"]}:
            self.names[name] = frozenset(stem(name[start:end]) for start, end in words_with_places(name))
        self.name_stems = frozenset(word for name in self.names.values() for word in name)

    def _set_beside(self, known: dict[int, tuple[int | None, ...]]) -> None:
        """The neighbours of the turns that were read, and those of their neighbours as far as they are known by that."""
        self.beside = {number: list(four) for number, four in known.items()}
        for number, four in known.items():
            for place, other in enumerate(four):
                if other is not None and other not in known:
                    self.beside.setdefault(other, [None] * 4)[(place + 2) % 4] = number

    def candidates(self) -> list[Candidate]:
        self.mean = weighing.mean_length([*(text for _, text in self.chunks.values()), *self.texts.values()])
        pairs = self._pair_weights()
        pages = {number: self._of_chunk(number, pairs) for number in self.chunks}
        own = self._of_turns(pairs)
        turns = {number: self._with_neighbours(number, own) for number in self.facts}
        sessions = self._of_sessions()
        best = max((*pages.values(), *turns.values()), default=0.0)
        if best <= 0:
            return []
        ranked = [
            (
                score / best * (1 + _SESSION_WEIGHT) * self._nearness(self.chunks[number][0]["at"]),
                Unit.CHUNK,
                number,
            )
            for number, score in pages.items()
        ]
        for number, score in turns.items():
            row = self.facts[number]
            worth = score / best + _SESSION_WEIGHT * sessions.get(row["session_id"], 0.0)
            ranked.append((worth * self._nearness(row["at"]), Unit.TURN, number))
        ranked.sort(key=lambda each: (-each[0], each[1], -each[2]))
        return [self._candidate(*each, pages, turns, sessions) for each in self._worth(ranked)]

    def _worth(self, ranked: list[tuple[float, Unit, int]]) -> list[tuple[float, Unit, int]]:
        """Of the candidates, best first, those that are worth showing: the first ones, and behind them one of each further session."""
        best = ranked[0][0]
        kept = [each for each in ranked[: self.most] if each[0] >= best * _WORTH_MIN]
        known = {self.facts[number]["session_id"] for _, unit, number in kept if unit is Unit.TURN}
        for score, unit, number in ranked[len(kept) :]:
            if score < best * _SESSION_WORTH_MIN or len(known) >= limits.SESSIONS_FOUND_MAX:
                break
            if unit is Unit.TURN and (session := self.facts[number]["session_id"]) not in known:
                known.add(session)
                kept.append((score, unit, number))
        return kept

    def _candidate(
        self,
        score: float,
        unit: Unit,
        number: int,
        pages: dict[int, float],
        turns: dict[int, float],
        sessions: dict[bytes, float],
    ) -> Candidate:
        if unit is Unit.CHUNK:
            details = {"words": round(pages[number], 4)}
        else:
            session = sessions.get(self.facts[number]["session_id"], 0.0)
            details = {"words": round(turns[number], 4), "session": round(session, 4)}
        return Candidate(unit=unit, number=number, score=score, details=details)

    def _nearness(self, moment: int) -> float:
        return 1 + _DATE_WEIGHT * self.dates.nearness(moment) if self.dates else 1.0

    def _pair_weights(self) -> list[tuple[float, float]]:
        """What each pair of words counts side by side and close together, by how few of the texts have it so."""
        texts = [*(text for _, text in self.chunks.values()), *self.texts.values()]
        counted = [self.counted(text) for text in texts if len(text.places) > 1]
        units = max(self.first.units, len(texts))
        weights: list[tuple[float, float]] = []
        for place in range(len(self.pairs)):
            both: list[float] = []
            for way, factor in enumerate(weighing.pair_weights()):
                found = sum(1 for each in counted if each[way][place])
                both.append(factor * math.log(1 + (units - found + 0.5) / (found + 0.5)))
            weights.append((both[0], both[1]))
        return weights

    def counted(self, text: weighing.Text) -> tuple[list[int], list[int]]:
        if id(text) not in self.pair_counts:
            self.pair_counts[id(text)] = weighing.pairs_in(text, self.pairs)
        return self.pair_counts[id(text)]

    def _of_pairs(self, text: weighing.Text, damped: float, weights: Sequence[tuple[float, float]]) -> float:
        if len(text.places) < 2:
            return 0.0
        side_by_side, close = self.counted(text)
        return sum(
            weight[0] * weighing.saturated(one, damped) + weight[1] * weighing.saturated(other, damped)
            for weight, one, other in zip(weights, side_by_side, close, strict=True)
            if one or other
        )

    def _of_chunk(self, number: int, pairs: Sequence[tuple[float, float]]) -> float:
        row, text = self.chunks[number]
        around = [
            (times, read)
            for times, read in (
                (_TITLE_COUNT, self._read_once(row["title"])),
                (_HEADING_COUNT, self._read_once(row["heading"])),
            )
            if read.places
        ]
        damped = weighing.damping(text, self.mean)
        score = self._of_pairs(text, damped, pairs)
        for wanted in self.first.wanted:
            count = text.count(wanted) + sum(times * read.count(wanted) for times, read in around)
            if not count and number in wanted.chunks:
                count = 1
            if count:
                score += wanted.weight * weighing.saturated(count, damped)
        return score

    def _read_once(self, text: str) -> weighing.Text:
        """Of a title, which many parts share."""
        if text not in self.titles:
            self.titles[text] = weighing.read(text, self.stems)
        return self.titles[text]

    def _of_turns(self, pairs: Sequence[tuple[float, float]]) -> dict[int, list[float]]:
        """What turns are worth by themselves for each of `wanted`, and, last, for pairs of words; those that are worth nothing
        are left out."""
        own: dict[int, list[float]] = {}
        for number in self.facts:
            text = self.texts.get(number)
            values = self._told(number) if text is None else self._of_turn(number, text, pairs)
            if any(values):
                boost = self._boost(self.facts[number])
                own[number] = [boost * value for value in values]
        return own

    def _told(self, number: int) -> list[float]:
        """Of a turn that is not read: one occurrence in a text of mean length."""
        return [*(each.weight if number in each.turns else 0.0 for each in self.first.wanted), 0.0]

    def _of_turn(self, number: int, text: weighing.Text, pairs: Sequence[tuple[float, float]]) -> list[float]:
        damped = weighing.damping(text, self.mean)
        values = [
            each.weight * weighing.saturated(self._count(each, number, text), damped)
            for each in self.first.wanted
        ]
        return [*values, self._of_pairs(text, damped, pairs)]

    def _count(self, wanted: Wanted, number: int, text: weighing.Text) -> float:
        count = text.count(wanted)
        if wanted.stem in self.name_stems:
            name = self.facts[number]["speaker_name"]
            return count * _MENTIONED + (1 if name and wanted.stem in self.names[name] else 0)
        return count or int(number in wanted.turns)

    def _boost(self, row: Row) -> float:
        boost = 1.0
        if row["speaker_name"]:
            return _NAMED if self.names[row["speaker_name"]] & self.stems else 1.0
        if row["speaker"] == "user":
            boost = _USER * (_FIRST_PERSON if self.is_mine else 1.0)
        elif self.is_yours:
            boost = _AGENT_ASKED
        return boost

    def _with_neighbours(self, number: int, own: dict[int, list[float]]) -> float:
        values = own.get(number)
        for place, other in enumerate(self.beside[number]):
            if other is None or (theirs := own.get(other)) is None:
                continue
            share = _BESIDE[place % 2]
            if place == 0 and self.facts[other]["tail"].rstrip().endswith("?"):
                share *= _BEHIND_A_QUESTION
            taken = [share * value for value in theirs]
            values = taken if values is None else list(map(max, values, taken))
        return sum(values) if values else 0.0

    def _of_sessions(self) -> dict[bytes, float]:
        """How well each session answers as a whole, from 0 to 1: BM25 over the turns that hold a word."""
        scores: dict[bytes, float] = {}
        counts: list[tuple[Wanted, dict[bytes, int]]] = []
        known: set[bytes] = set()
        for wanted in self.first.wanted:
            held: dict[bytes, int] = {}
            for session in wanted.turns.values():
                held[session] = held.get(session, 0) + 1
            known.update(held)
            counts.append((wanted, held))
        for _, held in counts:
            weight = math.log(1 + (len(known) - len(held) + 0.5) / (len(held) + 0.5))
            for session, count in held.items():
                part = weight * count * (_SESSION_K1 + 1) / (count + _SESSION_K1)
                scores[session] = scores.get(session, 0.0) + part
        best: Any = max(scores.values(), default=0.0)
        return {session: score / best for session, score in scores.items()} if best else {}


streams.add("lexical")(Stream(candidates=candidates, weight=1.5))

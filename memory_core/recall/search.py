"""Search: every stream is asked, what they found is fused, and the best units become hits."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

from memory_core import limits
from memory_core.clock import rfc3339
from memory_core.domain import authority, recalled
from memory_core.domain.page import Tier
from memory_core.domain.project import Project
from memory_core.errors import StorageFailed
from memory_core.ids import id_text
from memory_core.models.reranker import Passage, cut
from memory_core.recall import raw
from memory_core.recall import streams as stream_package
from memory_core.recall.ask import Ask, Candidate, Unit
from memory_core.recall.fusion import Fused, fused
from memory_core.recall.query import parse
from memory_core.recall.raw import RawHit
from memory_core.recall.snippets import snippet
from memory_core.recall.streams import streams
from memory_core.recall.turns import Turns
from memory_core.recall.vectors import QuestionVector
from memory_core.registry import discover
from memory_core.store import hits as store_hits
from memory_core.store.statement import Row
from memory_core.store.transaction import Reading

logger = logging.getLogger(__name__)
discover(stream_package)

_HINT = "the query holds no word to look for; use letters or digits"
#: What is said in passing weighs as an episode does.
_TURN_AUTHORITY = authority.factor(kind="turn", tier=Tier.EPISODIC, path="", tags=(), pinned=False)
_PAGES_ONLY = frozenset({Unit.CHUNK})


@dataclass(frozen=True, kw_only=True)
class Question:
    """A search in some projects (None: in all), for one principal."""

    text: str
    projects: Sequence[Project] | None
    #: UTC microseconds.
    now: int
    principal: str
    limit: int = limits.RESULTS_DEFAULT
    include_expired: bool = False
    explain: bool = False
    #: Leave turns out.
    pages_only: bool = False
    #: Of the text, where there is an embedder.
    vector: QuestionVector | None = None
    #: There is one, and it failed.
    vector_failed: bool = False
    #: So many hits at least, and of the first so many the passages: they are judged once more.
    judged: int = 0


@dataclass(frozen=True, kw_only=True)
class Hit:
    """The best part of a page, or a turn (`kind` is `turn` then)."""

    #: Of the page, or of the turn's event.
    id: str
    #: Of the page, or of that of the turn's session; empty where there is none.
    path: str
    title: str
    #: When the page was last changed, or the turn was said, RFC 3339.
    date: str
    project: str
    workspace: str
    kind: str
    #: Higher is better; comparable within one answer.
    score: float
    #: Fenced.
    snippet: str
    #: The session that the turn belongs to, or that the page was made of.
    session_id: str | None = None
    event_id: str | None = None
    #: Who said it, by name where it is known.
    speaker: str | None = None
    score_details: dict[str, Any] | None = None

    @property
    def is_turn(self) -> bool:
        return self.event_id is not None


@dataclass(kw_only=True)
class Found:
    hits: list[Hit] = field(default_factory=list[Hit])
    raw_hits: list[RawHit] = field(default_factory=list[RawHit])
    #: Names of what was asked, and of what did not answer.
    streams_active: list[str] = field(default_factory=list[str])
    streams_failed: list[str] = field(default_factory=list[str])
    terms: list[str] = field(default_factory=list[str])
    hint: str | None = None
    #: What each stream and the rest took.
    timings_ms: dict[str, float] = field(default_factory=dict[str, float])
    #: Of the first hits, where the question says so.
    passages: list[Passage] = field(default_factory=list[Passage])


turns: Turns[Question, Found] = Turns(limits.SEARCHES_AT_ONCE)


def search(reading: Reading, question: Question) -> Found:
    """What is known of `question.text`. No text raises; a part that fails is named, not hidden.

    Waits for a turn where many search at once. One that is answered elsewhere is answered from a snapshot that may be newer than `reading`.
    """
    return turns.answer(question, lambda: _searched(reading, question), may_leave=_is_small(question))


def _is_small(question: Question) -> bool:
    """Whether it needs no vectors in memory, which each process would have to read for itself."""
    is_narrow = question.projects is not None and len(question.projects) <= limits.VECTOR_PROJECTS_MAX
    return question.vector is None or is_narrow


def _searched(reading: Reading, question: Question) -> Found:
    query = parse(question.text)
    found = Found(terms=[term.text for term in query.terms])
    if not query.terms:
        found.hint = _HINT
        return found
    limit = min(max(question.limit, 1), limits.RESULTS_MAX)
    ask = Ask(
        text=question.text[: limits.QUERY_MAX_CHARS],
        query=query,
        projects=None if question.projects is None else [project.number for project in question.projects],
        now=question.now,
        principal=question.principal,
        include_expired=question.include_expired,
        units=_PAGES_ONLY if question.pages_only else frozenset(Unit),
        vector=question.vector,
    )
    if question.vector_failed:
        found.streams_failed.append("vector")
    begun = perf_counter()
    candidates = _asked(reading, ask, limit, found)
    began_hits = perf_counter()
    ranked = _ranked(reading, ask, candidates, limit)[: max(limit, question.judged)]
    found.hits = [_hit(score, one, row, ask, question) for score, one, row in ranked]
    found.passages = [
        Passage(title=row["title"], text=cut(row["text"], limits.RERANK_TEXT_MAX_BYTES))
        for _, _, row in ranked[: question.judged]
    ]
    found.timings_ms["hits"] = _ms(began_hits)
    if not found.hits and not question.pages_only:
        raw.look(reading, ask, limit, found)
    found.timings_ms["total"] = _ms(begun)
    return found


def top_page(reading: Reading, question: Question) -> str | None:
    """The path of the best page, None if there is none. `question` is one for pages only."""
    hits = search(reading, question).hits
    return hits[0].path if hits else None


def _asked(reading: Reading, ask: Ask, limit: int, found: Found) -> list[Fused]:
    wanted = max(limit * limits.STREAM_UNITS_PER_RESULT, limits.STREAM_UNITS_MIN)
    answers: dict[str, Sequence[Candidate]] = {}
    weights: dict[str, float] = {}
    for name, stream in sorted(streams, key=lambda each: each[1].is_led):
        if not stream.applies(ask):
            continue
        if stream.is_led and not ask.seeds:
            seeds = fused(answers, weights)[: limits.GRAPH_SEEDS]
            ask = replace(ask, seeds=[each.candidate for each in seeds])
        begun = perf_counter()
        try:
            answers[name] = [
                each for each in stream.candidates(reading, ask, wanted) if each.unit in ask.units
            ]
        except StorageFailed:
            logger.exception(
                "a search stream failed", extra={"action": "search_stream_failed", "stream": name}
            )
            found.streams_failed.append(name)
            continue
        found.streams_active.append(name)
        found.timings_ms[name] = _ms(begun)
        weights[name] = stream.weight
    return fused(answers, weights)


def _ranked(
    reading: Reading, ask: Ask, candidates: list[Fused], limit: int
) -> list[tuple[float, Fused, Row]]:
    """Best first; the first `limit` are the results."""
    candidates = candidates[: limit * limits.STREAM_UNITS_PER_RESULT]
    rows: dict[tuple[Unit, int], Row] = {}
    for unit, load in (
        (Unit.CHUNK, store_hits.of_chunks(reading, _numbers(candidates, Unit.CHUNK))),
        (Unit.TURN, store_hits.of_turns(reading, _numbers(candidates, Unit.TURN), now=ask.now)),
    ):
        rows.update({(unit, number): row for number, row in load.items()})
    ranked = [
        (one.score * _authority(one, row), one, row)
        for one in candidates
        if (row := rows.get((one.unit, one.number))) is not None
    ]
    ranked.sort(key=lambda each: (-each[0], each[1].unit, -each[1].number))
    return _capped(ranked, limit)


def _numbers(candidates: Sequence[Fused], unit: Unit) -> list[int]:
    return [one.number for one in candidates if one.unit is unit]


def _authority(one: Fused, row: Row) -> float:
    if one.unit is Unit.TURN:
        return _TURN_AUTHORITY
    return authority.factor(
        kind=row["kind"],
        tier=Tier(row["tier"]),
        path=row["path"],
        tags=json.loads(row["tags"]),
        pinned=bool(row["pinned"]),
        salience=row["salience"],
    )


def _capped(ranked: list[tuple[float, Fused, Row]], limit: int) -> list[tuple[float, Fused, Row]]:
    """Fit for the first `limit` to be the results: each page once, not too many turns of one session, and no page of a session whose turns are there.

    Behind the first ones sessions that are not there yet come before more of those that are.
    """
    early = max(limits.SESSION_HITS_MIN, limit * 4 // 5)
    said = {row["session_id"] for _, one, row in ranked[: limit * 2] if one.unit is Unit.TURN}
    taken: Counter[bytes] = Counter()
    kept: list[tuple[float, Fused, Row]] = []
    left: list[tuple[float, Fused, Row]] = []
    for each in ranked:
        _, one, row = each
        if one.unit is Unit.CHUNK:
            if row["session_id"] in said or taken[row["id"]]:
                continue
            taken[row["id"]] += 1
        elif taken[row["session_id"]] >= (
            early if len(kept) < limits.HITS_AS_THEY_COME else limits.SESSION_HITS_LATER
        ):
            left.append(each)
            continue
        else:
            taken[row["session_id"]] += 1
        kept.append(each)
    return kept + left


def _hit(score: float, one: Fused, row: Row, ask: Ask, question: Question) -> Hit:
    date = rfc3339(row["at"])
    is_turn = one.unit is Unit.TURN
    session = None if row["session_id"] is None else id_text(row["session_id"])
    path = row["path"] or ""
    source = f"{row['workspace']}/{row['project']}/{path}" if path else f"session {session}"
    return Hit(
        id=id_text(row["id"]),
        path=path,
        title=recalled.escape(row["title"]),
        date=date,
        project=row["project"],
        workspace=row["workspace"],
        kind="turn" if is_turn else row["kind"],
        score=round(score, 6),
        snippet=fenced(snippet(row["text"], ask.query.stems, ask.query.runs), f"{source}, {date}"),
        session_id=session,
        event_id=id_text(row["id"]) if is_turn else None,
        speaker=(row["speaker_name"] or row["speaker"]) if is_turn else None,
        score_details={
            "streams": one.streams,
            "fused": round(one.score, 6),
            "authority": round(_authority(one, row), 2),
        }
        if question.explain
        else None,
    )


def fenced(text: str, source: str) -> str:
    """A short recalled text between markers; `recalled.NOTICE` goes once with the whole answer."""
    return recalled.fence(" ".join(text.split()), source, with_notice=False)


def _ms(begun: float) -> float:
    return round((perf_counter() - begun) * 1_000, 2)

"""Search: the strict question first, the relaxed one for what is missing, raw observations when no page answers."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from memory_core import limits
from memory_core.clock import rfc3339
from memory_core.domain import recalled
from memory_core.domain.project import Project
from memory_core.errors import StorageFailed
from memory_core.ids import id_text
from memory_core.recall.query import Query, parse
from memory_core.recall.relaxing import relaxed
from memory_core.recall.snippets import MARK, UNMARK, snippet
from memory_core.store import searching
from memory_core.store.transaction import Reading

logger = logging.getLogger(__name__)

#: A page that shares only common words with a question is no answer to it: of the relaxed hits, those
#: below this share of the best one are left out.
_RELAXED_SHARE = 0.3
_PARTS_PER_PAGE = 4
#: A mark that a cut went through.
_HALF_MARK = re.compile("^[/a-z]{0,5}>|</?[a-z]{0,4}$")
_HINT = "the query holds no word to look for; use letters or digits"


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


@dataclass(frozen=True, kw_only=True)
class Hit:
    id: str
    path: str
    title: str
    #: When the page was last changed, RFC 3339.
    date: str
    project: str
    workspace: str
    kind: str
    #: Higher is better; comparable within one answer.
    score: float
    #: Fenced.
    snippet: str
    score_details: dict[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class RawHit:
    id: str
    session_id: str
    kind: str
    title: str
    date: str
    project: str
    workspace: str
    score: float
    #: Fenced.
    snippet: str


@dataclass(kw_only=True)
class Found:
    hits: list[Hit] = field(default_factory=list[Hit])
    raw_hits: list[RawHit] = field(default_factory=list[RawHit])
    #: Names of what was asked, and of what did not answer.
    streams_active: list[str] = field(default_factory=list[str])
    streams_failed: list[str] = field(default_factory=list[str])
    terms: list[str] = field(default_factory=list[str])
    hint: str | None = None


@dataclass(frozen=True, kw_only=True)
class _Candidate:
    number: int
    #: The best part of the page.
    chunk: int
    score: float
    stream: str


def search(reading: Reading, question: Question) -> Found:
    """What is known of `question.text`. No text raises; a part that fails is named, not hidden."""
    query = parse(question.text)
    found = Found(terms=[term.text for term in query.terms])
    if not query.terms:
        found.hint = _HINT
        return found
    limit = min(max(question.limit, 1), limits.RESULTS_MAX)
    best = _pages(reading, question, query, limit, found)
    found.hits = _hits(reading, question, query, best)
    if not found.hits:
        found.raw_hits = _raw(reading, question, query, limit, found)
    return found


def top_page(reading: Reading, question: Question) -> str | None:
    """The path of the best hit, None if there is none."""
    hits = search(reading, question).hits
    return hits[0].path if hits else None


def _pages(reading: Reading, question: Question, query: Query, limit: int, found: Found) -> list[_Candidate]:
    strict = _stream(reading, question, "pages_strict", query.strict, limit, found)
    if len(strict) >= limit:
        return strict
    expression = relaxed(
        query, lambda e, most: searching.count_pages(reading, e, _numbers(question), at_most=most)
    )
    if expression is None:
        return strict
    others = _stream(reading, question, "pages_relaxed", expression, limit + len(strict), found)
    known = {candidate.number for candidate in strict}
    floor = others[0].score * _RELAXED_SHARE if others else 0.0
    ceiling = strict[-1].score if strict else float("inf")
    more = [
        # Behind every page that has all terms, whatever its own score.
        replace(c, score=min(c.score, ceiling))
        for c in others
        if c.number not in known and c.score >= floor
    ]
    return [*strict, *more][:limit]


def _stream(
    reading: Reading, question: Question, name: str, expression: str, limit: int, found: Found
) -> list[_Candidate]:
    try:
        rows = searching.candidates(
            reading,
            expression,
            _numbers(question),
            now=None if question.include_expired else question.now,
            limit=limit * _PARTS_PER_PAGE,
        )
    except StorageFailed:
        logger.exception("a search stream failed", extra={"action": "search_stream_failed", "stream": name})
        found.streams_failed.append(name)
        return []
    found.streams_active.append(name)
    best: dict[int, _Candidate] = {}
    for row in rows:
        candidate = _Candidate(number=row["number"], chunk=row["chunk"], score=-row["rank"], stream=name)
        best.setdefault(row["number"], candidate)
    return list(best.values())[:limit]


def _hits(reading: Reading, question: Question, query: Query, best: list[_Candidate]) -> list[Hit]:
    hits: list[Hit] = []
    for candidate in best:
        row = searching.page_hit(reading, candidate.chunk)
        if row is not None:
            hits.append(_hit(row, candidate, question, query))
    return hits


def _hit(row: Any, candidate: _Candidate, question: Question, query: Query) -> Hit:
    date = rfc3339(row["updated_at"])
    return Hit(
        id=id_text(row["id"]),
        path=row["path"],
        title=recalled.escape(row["title"]),
        date=date,
        project=row["project"],
        workspace=row["workspace"],
        kind=row["kind"],
        score=round(candidate.score, 6),
        snippet=fenced(
            snippet(row["text"], query.stems, query.runs),
            f"{row['workspace']}/{row['project']}/{row['path']}, {date}",
        ),
        score_details={"stream": candidate.stream, "bm25": round(-candidate.score, 6), "tier": row["tier"]}
        if question.explain
        else None,
    )


def _raw(reading: Reading, question: Question, query: Query, limit: int, found: Found) -> list[RawHit]:
    expressions = {
        "observations_strict": lambda: query.strict,
        "observations_relaxed": lambda: relaxed(query, count),
    }

    def count(expression: str, at_most: int) -> int:
        return searching.count_observations(reading, expression, _numbers(question), at_most=at_most)

    for name, expression in expressions.items():
        try:
            match = expression()
            rows = match and searching.observation_hits(
                reading, match, _numbers(question), owner=question.principal, limit=limit
            )
        except StorageFailed:
            logger.exception(
                "a search stream failed", extra={"action": "search_stream_failed", "stream": name}
            )
            found.streams_failed.append(name)
            continue
        found.streams_active.append(name)
        if rows:
            return [_raw_hit(row) for row in rows]
    return []


def _raw_hit(row: Any) -> RawHit:
    date = rfc3339(row["recorded_at"])
    session = id_text(row["session_id"])
    return RawHit(
        id=id_text(row["id"]),
        session_id=session,
        kind=row["kind"],
        title=recalled.escape(row["title"]),
        date=date,
        project=row["project"],
        workspace=row["workspace"],
        score=round(-row["rank"], 6),
        snippet=fenced(_around_match(row["snippet"]), f"session {session}, {row['kind']}, {date}"),
    )


def _around_match(snippet: str) -> str:
    """A snippet in at most `HIT_SNIPPET_MAX_CHARS`: it is counted in words, and a word can be as long as its page."""
    most = limits.HIT_SNIPPET_MAX_CHARS
    if len(snippet) <= most:
        return snippet
    begin = max(snippet.find(MARK) - most // 3, 0)
    part = _HALF_MARK.sub("", snippet[begin : begin + most - len(UNMARK) - 2])
    end = UNMARK if part.count(MARK) > part.count(UNMARK) else ""
    return f"{'…' if begin else ''}{part}{end}…"


def fenced(text: str, source: str) -> str:
    """A short recalled text between markers; `recalled.NOTICE` goes once with the whole answer."""
    return recalled.fence(" ".join(text.split()), source, with_notice=False)


def _numbers(question: Question) -> list[int] | None:
    return None if question.projects is None else [project.number for project in question.projects]

"""Single events of sessions, asked only where neither a page nor a turn answers: what tools did and said."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from typing import Any, Protocol

from memory_core import limits
from memory_core.clock import rfc3339
from memory_core.domain import recalled
from memory_core.errors import StorageFailed
from memory_core.ids import id_text
from memory_core.recall.ask import Ask
from memory_core.recall.relaxing import relaxed
from memory_core.recall.snippets import MARK, UNMARK
from memory_core.store import searching
from memory_core.store.transaction import Reading

logger = logging.getLogger(__name__)

#: A mark that a cut went through.
_HALF_MARK = re.compile("^[/a-z]{0,5}>|</?[a-z]{0,4}$")


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


class Answer(Protocol):
    """Where what was found is noted."""

    raw_hits: list[RawHit]
    streams_active: list[str]
    streams_failed: list[str]


def look(reading: Reading, ask: Ask, limit: int, found: Answer) -> None:
    """The events that hold all words of the question, else those that hold rare ones of them."""

    def count(expression: str, at_most: int) -> int:
        return searching.count_observations(reading, expression, ask.projects, at_most=at_most)

    expressions = {
        "observations_strict": lambda: ask.query.strict,
        "observations_relaxed": lambda: relaxed(ask.query, count),
    }
    for name, expression in expressions.items():
        try:
            match = expression()
            rows = match and searching.observation_hits(
                reading, match, ask.projects, owner=ask.principal, limit=limit
            )
        except StorageFailed:
            logger.exception(
                "a search stream failed", extra={"action": "search_stream_failed", "stream": name}
            )
            found.streams_failed.append(name)
            continue
        found.streams_active.append(name)
        if rows:
            found.raw_hits = [_raw_hit(row) for row in rows]
            return


def _raw_hit(row: Any) -> RawHit:
    date = rfc3339(row["recorded_at"])
    session = id_text(row["session_id"])
    text = " ".join(_around_match(row["snippet"]).split())
    return RawHit(
        id=id_text(row["id"]),
        session_id=session,
        kind=row["kind"],
        title=recalled.escape(row["title"]),
        date=date,
        project=row["project"],
        workspace=row["workspace"],
        score=round(-row["rank"], 6),
        snippet=recalled.fence(text, f"session {session}, {row['kind']}, {date}", with_notice=False),
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

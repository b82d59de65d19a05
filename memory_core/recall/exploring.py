"""A project in a few sentences, made by rule: what is there, where work stopped, and what there is on one subject."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from memory_core import limits
from memory_core.clock import rfc3339
from memory_core.domain import recalled
from memory_core.domain.project import Project
from memory_core.domain.session_gap import Gap, ago, gap_since
from memory_core.recall.search import Found, Hit, Question, search
from memory_core.store import briefing, exploring, feedback, handoffs, searching
from memory_core.store.transaction import Reading

#: What is named of each sort.
_NAMED = 5
_WEEK_US = 7 * 86_400 * 1_000_000


@dataclass(frozen=True, kw_only=True)
class Explored:
    #: Fenced, at most `EXPLORE_PROSE_MAX_CHARS`.
    prose: str
    gap: Gap
    #: What answers the focus; nothing without one.
    found: Found


def explore(
    reading: Reading,
    project: Project,
    *,
    now: int,
    principal: str,
    session_id: bytes | None,
    focus: Question | None = None,
) -> Explored:
    """What is known of a project, for `principal`; the gap is that since its last session but the asking one. `focus` is
    what is looked for besides."""
    asking = session_id or exploring.only_open(reading, project.id, owner=principal)
    before = exploring.sessions_before(
        reading, project.id, owner=principal, but=asking, now=now, limit=_NAMED
    )
    gap = gap_since(before[0]["last_event_at"] if before else None, now)
    found = search(reading, focus) if focus else Found()
    paragraphs = [
        _contents(reading, project, now=now),
        _sessions(before, gap, now=now),
        _subject(found, focus.text) if focus else "",
        _changes(reading, project, now=now),
        _lasting(reading, project, now=now),
        _open_ends(reading, project, now=now, principal=principal),
    ]
    text = "\n\n".join(filter(None, paragraphs))
    source = f"overview of {project.workspace}/{project.name}, {rfc3339(now)}"
    return Explored(
        prose=recalled.fence(text[: limits.EXPLORE_PROSE_MAX_CHARS], source, with_notice=False),
        gap=gap,
        found=found,
    )


def _contents(reading: Reading, project: Project, *, now: int) -> str:
    kinds = exploring.kinds(reading, project.id, now=now)
    total = sum(row["count"] for row in kinds)
    totals = briefing.totals(reading, project.id)
    what = f" ({', '.join(_counted(row['count'], row['kind']) for row in kinds)})" if kinds else ""
    return (
        f"{project.workspace}/{project.name} holds {_counted(total, 'page')}{what},"
        f" {_counted(totals['sessions'], 'session')} and {_counted(totals['observations'], 'event')}."
    )


def _sessions(before: Sequence[Any], gap: Gap, *, now: int) -> str:
    if not before:
        return f"No session before this one is known: {gap.description}."
    last, *earlier = before
    state = "" if last["ended_at"] is not None else ", still open"
    text = (
        f"The last session was {ago(max(now - last['last_event_at'], 0))} ({last['agent']}{state}):"
        f" {_session(last)}. That is {gap.description}."
    )
    if earlier:
        text += f" Before it: {'; '.join(map(_session, earlier))}."
    return text


def _session(row: Any) -> str:
    return (
        _page(row["path"], row["title"] or "no title") if row["path"] else _title(row["title"] or "no title")
    )


def _subject(found: Found, focus: str) -> str:
    asked = _title(focus)
    if not found.hits:
        events = (
            f" Of what tools did, {_counted(len(found.raw_hits), 'event')} may." if found.raw_hits else ""
        )
        return f"Neither a page nor a turn answers {asked}.{events}"
    return "\n".join([f"What answers {asked} best:", *(f"- {_answer(hit)}" for hit in found.hits)])


def _answer(hit: Hit) -> str:
    if not hit.is_turn:
        return f"{_page(hit.path, hit.title)}, {hit.date[:10]}"
    place = f"in {hit.path}" if hit.path else f"in session {hit.session_id}"
    return f"said by {_title(hit.speaker or 'somebody')} {place}, {hit.date[:10]}"


def _changes(reading: Reading, project: Project, *, now: int) -> str:
    past = briefing.activity(reading, project.id, since=now - _WEEK_US, now=now)
    text = (
        f"In the last 7 days: {_counted(past['sessions'], 'session')}, {_counted(past['observations'], 'event')},"
        f" {_counted(past['pages_updated'], 'page')} changed."
    )
    rows = searching.recent_pages(reading, project.id, now=now, limit=_NAMED)
    return _with_pages(f"{text} Changed last:", rows) if rows else text


def _lasting(reading: Reading, project: Project, *, now: int) -> str:
    core = briefing.core_pages(reading, project.id, now=now, limit=limits.CORE_PAGES_MAX, max_chars=0)
    pointed = exploring.pointed_to(reading, project.id, now=now, limit=_NAMED)
    parts = [_with_pages("What always holds stands in", core)] if core else []
    if pointed:
        pages = ", ".join(f"{_page(row['path'], row['title'])} ({row['count']})" for row in pointed)
        parts.append(f"Other pages point most to {pages}.")
    return " ".join(parts)


def _open_ends(reading: Reading, project: Project, *, now: int, principal: str) -> str:
    flags = feedback.flagged(reading, project.id, now=now, limit=_NAMED)
    waiting = handoffs.counts(reading, project.id, owner=principal)
    count = waiting["open"] + waiting["offered"]
    parts = [_with_pages("Called stale or wrong and not written anew:", flags)] if flags else []
    if count:
        parts.append(f"{_counted(count, 'handoff')} {'waits' if count == 1 else 'wait'} for a session.")
    return " ".join(parts)


def _with_pages(head: str, rows: Iterable[Any]) -> str:
    return f"{head} {', '.join(_page(row['path'], row['title']) for row in rows)}."


def _page(path: str, title: str) -> str:
    return f"{path} {_title(title)}"


def _title(text: str) -> str:
    line = " ".join(text.split())
    most = limits.EXPLORE_TITLE_MAX_CHARS
    return f"“{line if len(line) <= most else line[: most - 1] + '…'}”"


def _counted(count: int, what: str) -> str:
    return f"{count} {what if count == 1 else what + 's'}"

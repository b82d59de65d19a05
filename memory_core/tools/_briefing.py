"""A project in one answer: what always holds, what changed, how much went on, for the tools that tell it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memory_core import limits
from memory_core.clock import MICROSECONDS, rfc3339
from memory_core.domain import recalled
from memory_core.domain.project import Project
from memory_core.recall.scope import global_project
from memory_core.store import briefing, feedback, handoffs, searching
from memory_core.store.transaction import Reading
from memory_core.tools._answers import NOTICE, Room, clamped

_DAY_US = 86_400 * MICROSECONDS
_NEIGHBOURS_MAX = 20
_FLAGGED_MAX = 10
#: Of the answer, for the texts of rules and slots; the rest is for lists.
_TEXTS_SHARE = 0.5
#: Of these texts, for what holds in every project.
_GLOBAL_SHARE = 0.25


@dataclass(frozen=True, kw_only=True)
class Counts:
    pages: int
    sessions: int
    sessions_open: int
    observations: int


@dataclass(frozen=True, kw_only=True)
class Activity:
    days: int
    sessions: int
    observations: int
    pages_updated: int


@dataclass(frozen=True, kw_only=True)
class ListedPage:
    path: str
    title: str
    kind: str
    updated_at: str


@dataclass(frozen=True, kw_only=True)
class CorePage:
    path: str
    title: str
    kind: str
    updated_at: str
    pinned: bool
    #: The beginning of its text, fenced; absent where the answer has no room for it.
    text: str | None = None
    #: There is more than is shown: read the page.
    is_cut: bool


@dataclass(frozen=True, kw_only=True)
class FlaggedPage:
    path: str
    title: str
    #: `stale` or `wrong`.
    signal: str
    date: str
    reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class Neighbour:
    workspace: str
    project: str
    #: How many links there are.
    links: int


@dataclass(frozen=True, kw_only=True)
class Briefing:
    workspace: str
    project: str
    counts: Counts
    activity_7d: Activity
    activity_30d: Activity
    #: Handoffs that wait for a session of this user, or of anybody.
    pending_handoff_count: int
    #: What the texts are.
    notice: str
    last_observation_at: str | None = None
    rules: list[CorePage] = field(default_factory=list[CorePage])
    slots: list[CorePage] = field(default_factory=list[CorePage])
    #: Pinned pages that are neither.
    pinned: list[CorePage] = field(default_factory=list[CorePage])
    #: Rules, slots and pinned pages that hold in every project.
    global_pages: list[CorePage] = field(default_factory=list[CorePage])
    recent_pages: list[ListedPage] = field(default_factory=list[ListedPage])
    #: Pages that somebody called stale or wrong and that nobody wrote anew since.
    flagged_pages: list[FlaggedPage] = field(default_factory=list[FlaggedPage])
    #: Other projects whose pages link here.
    cross_project_dependents: list[Neighbour] = field(default_factory=list[Neighbour])
    #: Other projects that pages of this one link to.
    cross_project_dependencies: list[Neighbour] = field(default_factory=list[Neighbour])
    hint: str | None = None


def briefing_of(
    reading: Reading,
    project: Project,
    *,
    now: int,
    principal: str,
    recent_pages: int,
    chars: int = limits.ANSWER_MAX_CHARS,
) -> dict[str, Any]:
    """A `Briefing` of a project in at most `chars` characters of JSON, with so many of the pages that changed last."""
    shared = global_project(reading)
    texts = Room(int(chars * _TEXTS_SHARE))
    everywhere: list[CorePage] = []
    if shared is not None and shared.id != project.id:
        room = Room(int(chars * _TEXTS_SHARE * _GLOBAL_SHARE))
        everywhere = _core(reading, shared, now=now, room=room)
        texts.spend(everywhere)
    facts = _facts(reading, project, now=now, principal=principal)
    core = _core(reading, project, now=now, room=texts)
    recents = searching.recent_pages(reading, project.id, now=now, limit=clamped(recent_pages))
    flags = feedback.flagged(reading, project.id, now=now, limit=_FLAGGED_MAX)
    lists = ([_listed(row) for row in recents], [_flagged(row) for row in flags])
    return _bounded(facts, everywhere, core, *lists, room=Room(chars))


def _facts(reading: Reading, project: Project, *, now: int, principal: str) -> dict[str, Any]:
    totals = briefing.totals(reading, project.id)
    waiting = handoffs.counts(reading, project.id, owner=principal)
    return {
        "workspace": project.workspace,
        "project": project.name,
        "counts": {
            "pages": searching.page_counts(reading, project.id)["pages_latest"],
            "sessions": totals["sessions"],
            "sessions_open": totals["sessions_open"],
            "observations": totals["observations"],
        },
        "activity_7d": _activity(reading, project, days=7, now=now),
        "activity_30d": _activity(reading, project, days=30, now=now),
        "pending_handoff_count": waiting["open"] + waiting["offered"],
        "last_observation_at": None if totals["last_at"] is None else rfc3339(totals["last_at"]),
        "cross_project_dependents": _neighbours(
            briefing.dependents(reading, project, now=now, limit=_NEIGHBOURS_MAX)
        ),
        "cross_project_dependencies": _neighbours(
            briefing.dependencies(reading, project, now=now, limit=_NEIGHBOURS_MAX)
        ),
        "notice": NOTICE,
    }


def _activity(reading: Reading, project: Project, *, days: int, now: int) -> Activity:
    return Activity(days=days, **briefing.activity(reading, project.id, since=now - days * _DAY_US, now=now))


def _neighbours(rows: Sequence[Mapping[str, Any]]) -> list[Neighbour]:
    return [Neighbour(workspace=r["workspace"], project=r["project"], links=r["links"]) for r in rows]


def _core(reading: Reading, project: Project, *, now: int, room: Room) -> list[CorePage]:
    """Pages that always count, in their order, each with the beginning of its text as long as there is room."""
    most = limits.CORE_PAGE_TEXT_MAX_CHARS
    found: list[CorePage] = []
    for row in briefing.core_pages(reading, project.id, now=now, limit=limits.CORE_PAGES_MAX, max_chars=most):
        date = rfc3339(row["updated_at"])
        source = f"page {project.workspace}/{project.name}/{row['path']}, version of {date}"
        text = recalled.fence(row["text"], source, with_notice=False)
        is_shown = room.take(text)
        found.append(
            CorePage(
                path=row["path"],
                title=recalled.escape(row["title"]),
                kind=row["kind"],
                updated_at=date,
                pinned=bool(row["pinned"]),
                text=text if is_shown else None,
                is_cut=not is_shown or row["chars"] > most,
            )
        )
    return found


def _listed(row: Mapping[str, Any]) -> ListedPage:
    return ListedPage(
        path=row["path"],
        title=recalled.escape(row["title"]),
        kind=row["kind"],
        updated_at=rfc3339(row["updated_at"]),
    )


def _flagged(row: Mapping[str, Any]) -> FlaggedPage:
    return FlaggedPage(
        path=row["path"],
        title=recalled.escape(row["title"]),
        signal=row["signal"],
        date=rfc3339(row["created_at"]),
        reason=None if row["reason"] is None else recalled.escape(row["reason"]),
    )


def _bounded(
    facts: dict[str, Any],
    everywhere: list[CorePage],
    core: list[CorePage],
    recents: list[ListedPage],
    flags: list[FlaggedPage],
    *,
    room: Room,
) -> dict[str, Any]:
    room.spend(facts)
    everywhere_shown = room.fitting(everywhere)
    core_shown = room.fitting(core)
    flags_shown = room.fitting(flags)
    recents_shown = room.fitting(recents)
    is_whole = (everywhere_shown, core_shown, flags_shown, recents_shown) == (
        everywhere,
        core,
        flags,
        recents,
    )
    return {
        **facts,
        "rules": [page for page in core_shown if _section(page) == "_rules"],
        "slots": [page for page in core_shown if _section(page) == "_slots"],
        "pinned": [page for page in core_shown if _section(page) not in ("_rules", "_slots")],
        "global_pages": everywhere_shown,
        "recent_pages": recents_shown,
        "flagged_pages": flags_shown,
        "hint": None if is_whole else "the answer was cut to its size limit; read or search for the rest",
    }


def _section(page: CorePage) -> str:
    return page.path.partition("/")[0].lower()

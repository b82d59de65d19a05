"""The project brief: what a session that starts is told of its project, in as many characters as it asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memory_core import limits
from memory_core.clock import rfc3339
from memory_core.domain import recalled
from memory_core.domain.project import Project
from memory_core.store import briefing
from memory_core.store.searching import recent_pages
from memory_core.store.transaction import Reading

_CUT = "\n… (cut; memory_read_page has the rest)"
_OMITTED = "Not shown for lack of room, read them with memory_read_page:"
#: A page of which less than this fits is named only.
_BEGINNING_MIN_CHARS = 120
#: Shares of the room: of the list of recent pages, of the names of pages that do not fit.
_RECENT_SHARE, _OMITTED_SHARE = 4, 8


@dataclass(frozen=True, kw_only=True)
class _Block:
    """A page in the brief; all of it escaped, so that its length is what it will take."""

    path: str
    head: str
    body: str
    #: The body goes on.
    is_part: bool


def project_brief(reading: Reading, project: Project, *, now: int, max_chars: int) -> str:
    """Pinned pages, rules and slots with their text as far as they fit, the others by path, then what changed last;
    fenced, at most `max_chars` characters. Empty for a project without pages."""
    core = briefing.core_pages(
        reading, project.id, now=now, limit=limits.CORE_PAGES_MAX, max_chars=max_chars, unasked=True
    )
    recents = recent_pages(reading, project.id, now=now, limit=limits.BRIEF_RECENT_PAGES)
    if not core and not recents:
        return ""
    source = f"brief of {project.workspace}/{project.name}, {rfc3339(now)}"
    room = max_chars - len(recalled.fence("", source))
    return recalled.fence(_text([_block(row) for row in core], _recent_lines(recents), room), source)


def _block(row: Mapping[str, Any]) -> _Block:
    return _Block(
        path=recalled.escape(row["path"]),
        head=f"### {recalled.escape(row['title'])} ({recalled.escape(row['path'])})\n\n",
        body=recalled.escape(row["text"]).strip(),
        is_part=row["chars"] > len(row["text"]),
    )


def _recent_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return [
        f"- {recalled.escape(row['title'])} ({recalled.escape(row['path'])}, {rfc3339(row['updated_at'])[:10]})"
        for row in rows
    ]


def _text(blocks: list[_Block], recents: list[str], room: int) -> str:
    last = _listed("### Changed last", recents, room // _RECENT_SHARE if blocks else room)
    names = _listed(_OMITTED, [f"- {block.path}" for block in blocks], room // _OMITTED_SHARE)
    parts: list[str] = []
    # The names take their room only if there is one to name.
    left = room - len(last) - 2 - len(names) - 2
    omitted: list[str] = []
    for block in blocks:
        shown = None if omitted else _shown(block, left)
        if shown is None:
            omitted.append(f"- {block.path}")
            continue
        parts.append(shown)
        left -= len(shown) + 2
    if omitted:
        parts.append(_listed(_OMITTED, omitted, max(len(names), room // _OMITTED_SHARE)))
    return "\n\n".join(part for part in (*parts, last) if part)[: max(room, 0)]


def _shown(block: _Block, room: int) -> str | None:
    whole = block.head + block.body
    if len(whole) <= room and not block.is_part:
        return whole
    left = room - len(block.head) - len(_CUT)
    return block.head + block.body[:left].rstrip() + _CUT if left >= _BEGINNING_MIN_CHARS else None


def _listed(head: str, lines: Sequence[str], room: int) -> str:
    """As many lines as fit below their head, and how many do not; empty when none fits."""
    if not lines:
        return ""
    kept: list[str] = []
    room -= len(head) + len("\n- … and 999 more")
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    if not kept:
        return ""
    more = [f"- … and {len(lines) - len(kept)} more"] if len(kept) < len(lines) else []
    return "\n".join((head, *kept, *more))

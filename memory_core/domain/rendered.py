"""The two files of a project that are rendered from its tables: `index.md` and one log a month. Pure: rows in, text out.

Each carries a sum of itself in its first line, so that one which nobody touched, an older one from a
checkout too, is known as memoryd's own.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby

from memory_core import limits
from memory_core.clock import MICROSECONDS
from memory_core.domain.page import SESSIONS_FOLDER
from memory_core.domain.recalled import escape

INDEX = "index.md"
_MARK = re.compile(
    r"<!-- memoryd renders this file from its tables; what is written here goes; sum (\w{16}) -->\n"
)
_LOG = re.compile(r"log-(\d{4})-(\d{2})\.md")
_ESCAPED = re.compile(r"([\\\[\]`<>*_])")
_NEEDS_POINTS = re.compile(r"[\s()<>%#?\\]")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class Listed:
    """A page as the index shows it."""

    path: str
    title: str
    kind: str
    pinned: bool


@dataclass(frozen=True, kw_only=True)
class Happened:
    """One thing that happened to a page; `at` is UTC microseconds, `what` one word."""

    at: int
    what: str
    path: str
    title: str
    actor: str


def log_name(at: int) -> str:
    """The name of the log of a moment's month (UTC)."""
    return _moment(at).strftime("log-%Y-%m.md")


def month_of(name: str) -> tuple[int, int] | None:
    """The month of a log by its name: its first microsecond (UTC), and that of the next; None for no such name."""
    found = _LOG.fullmatch(name)
    if found is None or not 1 <= int(found.group(2)) <= 12 or not 1970 <= int(found.group(1)) < 9999:
        return None
    year, month = int(found.group(1)), int(found.group(2))
    first = datetime(year, month, 1, tzinfo=UTC)
    after = datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC)
    return _us(first), _us(after)


def index_text(
    project: str, workspace: str, pages: Sequence[Listed], sessions: Sequence[Listed], counts: tuple[int, int]
) -> str:
    """The index of a project. `pages` are all pages but those of sessions, `sessions` the newest of these, newest first;
    of both at most as many as the limits say. `counts`: how many there are of each."""
    page_count, session_count = counts
    lines = [
        f"# {_shown(project)}",
        "",
        f"{page_count} pages and {session_count} session pages of `{workspace}/{project}`.",
    ]
    if len(pages) < page_count:
        lines += ["", f"The {len(pages)} pages that were changed last are listed."]
    pinned = sorted((page for page in pages if page.pinned), key=lambda page: page.path.casefold())
    if pinned:
        lines += ["", "## Pinned", "", *map(_item, pinned)]
    rest = sorted(
        (page for page in pages if not page.pinned), key=lambda page: (_folder(page), page.path.casefold())
    )
    for folder, of_folder in groupby(rest, _folder):
        lines += ["", f"## {_shown(folder) or 'Pages'}", "", *map(_item, of_folder)]
    if sessions:
        which = (
            f"the newest {len(sessions)} of {session_count}"
            if len(sessions) < session_count
            else "newest first"
        )
        lines += ["", f"## {SESSIONS_FOLDER} ({which})", "", *map(_item, sessions)]
    return _marked(lines)


def log_text(name: str, happened: Iterable[Happened], *, is_whole: bool) -> str:
    """The log of a month from what happened in it (newest first). What one actor did to a page on a day is one line."""
    month = name.removeprefix("log-").removesuffix(".md")
    lines = [f"# Log of {month}"]
    if not is_whole:
        lines += ["", f"The last {limits.LOG_ROWS_MAX} entries."]
    for day, of_day in groupby(happened, lambda one: _moment(one.at).date()):
        lines += ["", f"## {day.isoformat()}", ""]
        joined: dict[tuple[str, str, str], list[Happened]] = {}
        for one in of_day:
            joined.setdefault((one.path, one.what, one.actor), []).append(one)
        lines += [_entry(same) for same in joined.values()]
    return _marked(lines)


def is_untouched(text: str) -> bool:
    """Whether a file is just as memoryd rendered it at some time."""
    mark = _MARK.match(text)
    return mark is not None and mark.group(1) == _sum(text[mark.end() :])


def without_mark(text: str) -> str:
    """What a person sees as the text of a rendered file."""
    return _MARK.sub("", text, count=1)


def _marked(lines: Sequence[str]) -> str:
    text = "\n".join([*lines, ""])
    return f"<!-- memoryd renders this file from its tables; what is written here goes; sum {_sum(text)} -->\n{text}"


def _sum(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def _entry(same: Sequence[Happened]) -> str:
    newest = same[0]
    times = f" {len(same)} times" if len(same) > 1 else ""
    by = f" by {_shown(newest.actor)}" if newest.actor else ""
    return f"- {_moment(newest.at):%H:%M} {newest.what}{times}: {_link(newest.path, newest.title)}{by}"


def _item(page: Listed) -> str:
    return f"- {_link(page.path, page.title)}"


def _link(path: str, title: str) -> str:
    target = f"<{path}>" if _NEEDS_POINTS.search(path) else path
    if any(char in path for char in "<>%#?"):
        return f"{_shown(title)} (`{path}`)"
    return f"[{_shown(title)}]({target})"


def _shown(text: str) -> str:
    return _ESCAPED.sub(r"\\\1", escape(text))


def _folder(page: Listed) -> str:
    return page.path.rpartition("/")[0]


def _moment(us: int) -> datetime:
    return _EPOCH + timedelta(seconds=us // MICROSECONDS)


def _us(moment: datetime) -> int:
    return round((moment - _EPOCH) / timedelta(microseconds=1))

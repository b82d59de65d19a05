"""A file of the wiki as it was last looked at, and what may have become of it since."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from memory_core import limits
from memory_core.domain.drafts import is_draft
from memory_core.domain.page import SUFFIX, check_not_reserved, page_path
from memory_core.errors import Invalid

#: Kept by memoryd itself beside the pages, or rendered from its tables.
_OWN = re.compile(
    r"(?:.*/)?_meta\.md|index\.md|bootstrap\.md|log(?:-\d{4}-\d{2})?\.md|_pending/.*", re.IGNORECASE
)

NOT_TEXT = "it is not UTF-8 text; save it as UTF-8, or move it away"
_TOO_LARGE = "it is longer than {} KB; split it"
TOO_LARGE = _TOO_LARGE.format(limits.OUTSIDE_PAGE_MAX_BYTES // limits.KIB)
NAME_TELLS = "there is a secret in its name; rename it"
#: Of a file that can be no page for what is in it.
UNFIT = (NOT_TEXT, TOO_LARGE)


@dataclass(frozen=True, slots=True)
class FileStat:
    """What tells a changed file from an unchanged one without reading it. A save by rename changes the inode."""

    size: int
    mtime_ns: int
    inode: int


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a page's file cannot be put where it belongs: a sentence about what is there, with what to do."""

    reason: str
    #: A plain file that can be no page for what is in it; else something that is no file, there or on the way.
    is_file: bool


def text_of(content: bytes, max_bytes: int = limits.OUTSIDE_PAGE_MAX_BYTES) -> tuple[str | None, str | None]:
    """The text of a file that can be a page, or why it cannot. Of a longer file more than `max_bytes` must be given."""
    if len(content) > max_bytes:
        return None, _TOO_LARGE.format(max_bytes // limits.KIB)
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None, NOT_TEXT
    return (None, NOT_TEXT) if "\x00" in text else (text, None)


def is_candidate(inside: str, is_page: Callable[[str], bool] = lambda _inside: False) -> bool:
    """Whether a file, by its path inside its project, may be a page: markdown, not hidden, no draft, not memoryd's own.

    What programs that carry files about are still writing is hidden or ends in something else. What `is_page` already, from
    a time when fewer names were those of drafts, stays one.
    """
    parts = inside.split("/")
    return (
        inside.casefold().endswith(SUFFIX)
        and not any(part.startswith(".") for part in parts)
        and _OWN.fullmatch(inside) is None
        and (not any(map(is_draft, parts)) or is_page(inside))
    )


def trouble_with_name(inside: str, *, is_page: bool = False) -> str | None:
    """Why a file cannot be a page under that name; None when it can. One that is a page has a name that was free once."""
    try:
        path = page_path(inside)
        if not is_page:
            check_not_reserved(path)
    except Invalid as error:
        return str(error)
    if path.path != inside:
        return "its name is not in the composed normal form (NFC); rename it"
    return None

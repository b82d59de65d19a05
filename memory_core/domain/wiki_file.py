"""A file of the wiki as it was last looked at, and what may have become of it since."""

from __future__ import annotations

import re
from dataclasses import dataclass

from memory_core.domain.page import SUFFIX, check_not_reserved, page_path
from memory_core.errors import Invalid

#: Kept by memoryd itself beside the pages, or rendered from its tables.
_OWN = re.compile(
    r"(?:.*/)?_meta\.md|index\.md|bootstrap\.md|log(?:-\d{4}-\d{2})?\.md|_pending/.*", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class FileStat:
    """What tells a changed file from an unchanged one without reading it. A save by rename changes the inode."""

    size: int
    mtime_ns: int
    inode: int


def is_candidate(inside: str) -> bool:
    """Whether a file, by its path inside its project, may be a page: markdown, not hidden, not memoryd's own.

    Drafts of editors and of programs that carry files about are hidden or end in something else.
    """
    return (
        inside.casefold().endswith(SUFFIX)
        and not any(part.startswith(".") for part in inside.split("/"))
        and _OWN.fullmatch(inside) is None
    )


def trouble_with_name(inside: str) -> str | None:
    """Why a file cannot be a page under that name; None when it can."""
    try:
        path = page_path(inside)
        check_not_reserved(path)
    except Invalid as error:
        return str(error)
    if path.path != inside:
        return "its name is not in the composed normal form (NFC); rename it"
    return None

"""One page that somebody asks for by its address."""

from __future__ import annotations

from memory_core.clock import rfc3339
from memory_core.domain.page import page_path
from memory_core.domain.project import Project
from memory_core.errors import NotFound
from memory_core.store.database import Snapshot
from memory_core.store.pages import StoredPage, page_at
from web import lists


def page_asked(reading: Snapshot, project: Project, path: str, *, now: int) -> StoredPage:
    """The page at a path; `NotFound` where there is none, and where it is expired unless the query says `include_expired`."""
    place, with_expired = page_path(path), lists.flag("include_expired")
    page = page_at(reading, project.id, place.key)
    if page is None:
        raise NotFound(f"There is no page {path[:200]!r} in {project.workspace}/{project.name} (yet).")
    if page.expires_at is not None and page.expires_at <= now and not with_expired:
        raise NotFound(
            f"{page.path} expired at {rfc3339(page.expires_at)}; add include_expired=true to the address to see it."
        )
    return page

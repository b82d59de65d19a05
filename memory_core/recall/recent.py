"""What changed last in a project."""

from __future__ import annotations

from dataclasses import dataclass

from memory_core import limits
from memory_core.clock import rfc3339
from memory_core.domain import recalled
from memory_core.domain.project import Project
from memory_core.ids import id_text
from memory_core.recall.search import fenced
from memory_core.store.searching import recent_pages
from memory_core.store.transaction import Reading


@dataclass(frozen=True, kw_only=True)
class RecentPage:
    id: str
    path: str
    title: str
    #: When it was last changed, RFC 3339.
    date: str
    project: str
    workspace: str
    kind: str
    #: The beginning of its text, fenced.
    snippet: str


def recent(reading: Reading, project: Project, *, now: int, limit: int) -> list[RecentPage]:
    """The pages of a project that changed last, newest first; expired and deleted ones are not among them."""
    rows = recent_pages(reading, project.id, now=now, limit=min(max(limit, 1), limits.RESULTS_MAX))
    return [
        RecentPage(
            id=id_text(row["id"]),
            path=row["path"],
            title=recalled.escape(row["title"]),
            date=rfc3339(row["updated_at"]),
            project=row["project"],
            workspace=row["workspace"],
            kind=row["kind"],
            snippet=fenced(
                " ".join(row["head"].split())[: limits.SNIPPET_MAX_CHARS],
                f"{row['workspace']}/{row['project']}/{row['path']}, {rfc3339(row['updated_at'])}",
            ),
        )
        for row in rows
    ]

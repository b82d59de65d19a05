"""Which pages of a project want care: told by their rows alone, nothing is judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, and_, bindparam, exists, func, or_, select

from memory_core.domain.project import Project
from memory_core.store.links import last_part
from memory_core.store.statement import Row, Statement
from memory_core.store.tables import links, page_versions, pages
from memory_core.store.transaction import Reading

_LIVE = and_(
    pages.c.project_id == bindparam("project_id"),
    pages.c.tombstoned_at.is_(None),
    or_(pages.c.expires_at.is_(None), pages.c.expires_at > bindparam("now")),
)


def _of(*columns: Any) -> Any:
    return (
        select(*columns)
        .join_from(pages, page_versions, page_versions.c.id == pages.c.version_id)
        .where(_LIVE)
    )


_TITLES_SHARED = _of(page_versions.c.title).group_by(page_versions.c.title).having(func.count() > 1)
_IS_TWIN = page_versions.c.title.in_(_TITLES_SHARED)
_IS_STALE = and_(
    page_versions.c.tier == "episodic",
    func.max(pages.c.updated_at, func.coalesce(pages.c.last_accessed_at, 0)) < bindparam("untouched_since"),
)
_points_here = or_(
    and_(links.c.to_project == "", links.c.project_id == pages.c.project_id),
    and_(links.c.to_project == bindparam("project"), links.c.to_workspace == bindparam("workspace")),
)
_IS_ORPHAN = and_(
    ~exists(select(links.c.to_path_key).where(links.c.from_page_id == pages.c.id)),
    ~exists(select(links.c.to_path_key).where(links.c.to_path_key == pages.c.path_key, _points_here)),
    # By its name alone.
    ~exists(
        select(links.c.to_path_key).where(
            links.c.to_path_key == last_part,
            links.c.to_project == "",
            links.c.project_id == pages.c.project_id,
        )
    ),
)


def _those(condition: ColumnElement[bool], order: Any) -> tuple[Statement, Statement]:
    shown = (pages.c.path, pages.c.updated_at, page_versions.c.title, page_versions.c.kind)
    return (
        Statement(_of(func.count().label("count")).where(condition)),
        Statement(_of(*shown).where(condition).order_by(order, pages.c.path_key).limit(bindparam("limit"))),
    )


_STALE = _those(_IS_STALE, pages.c.updated_at)
_TWINS = _those(_IS_TWIN, page_versions.c.title)
_ORPHANS = _those(_IS_ORPHAN, pages.c.updated_at.desc())
_TITLES = Statement(select(func.count().label("count")).select_from(_TITLES_SHARED.subquery()))


@dataclass(frozen=True, kw_only=True)
class Health:
    """How many pages of each kind there are, and the first of them (path, updated_at, title, kind)."""

    #: Episodic, and nobody wrote or came upon them for long.
    stale: int
    stale_pages: list[Row]
    #: Pages more than there are titles.
    duplicates: int
    duplicate_pages: list[Row]
    #: No page points to them, and they point to none.
    orphans: int
    orphan_pages: list[Row]


def of_project(read: Reading, project: Project, *, now: int, untouched_since: int, limit: int) -> Health:
    """The health of a project's pages that are neither deleted nor expired; lists have at most `limit` rows."""
    scope = {"project_id": project.id, "now": now}
    names = {"project": project.name, "workspace": project.workspace}

    def told(statements: tuple[Statement, Statement], **more: Any) -> tuple[int, list[Row]]:
        count, listing = statements
        return read.rows(count, **scope, **more)[0]["count"], read.rows(listing, **scope, **more, limit=limit)

    stale, stale_pages = told(_STALE, untouched_since=untouched_since)
    twins, twin_pages = told(_TWINS)
    orphans, orphan_pages = told(_ORPHANS, **names)
    titles = read.rows(_TITLES, **scope)[0]["count"]
    return Health(
        stale=stale,
        stale_pages=stale_pages,
        duplicates=twins - titles,
        duplicate_pages=twin_pages,
        orphans=orphans,
        orphan_pages=orphan_pages,
    )

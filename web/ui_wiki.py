"""Pages of `/ui` that show the wiki: projects, one project, one page, search."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from flask import Blueprint, render_template, url_for

from memory_core import limits
from memory_core.clock import MICROSECONDS
from memory_core.domain import recalled
from memory_core.domain.links import PageLink
from memory_core.domain.page import page_path
from memory_core.domain.project import Project
from memory_core.ids import id_text
from memory_core.recall.scope import Asker, project_for
from memory_core.store import briefing, contents, handoffs, health, knowledge, links, searching, version_lists
from memory_core.store.database import Snapshot
from memory_core.store.links import LinkedPage
from memory_core.store.pages import StoredPage, version_row
from web import lists
from web.api_search import found_for
from web.api_versions import one_version, versions_of
from web.auth import current, needs
from web.markdown import Markdown
from web.pages import page_asked
from web.parts import Parts
from web.query import takes
from web.shapes import handoff_shape
from web.snippets import marked

_DAY_US = 86_400 * MICROSECONDS
_HITS = 50
_RECENT = 10
#: Of one page, beside its text; the others are on a page of their own.
_VERSIONS = 5
FILTERS: Mapping[str, Callable[..., Any]] = {"marked": marked, "id": id_text}


def add(routes: Blueprint, parts: Parts) -> None:
    markdown = Markdown()

    @routes.get("/")
    @needs("read")
    @takes("limit", "after")
    def home() -> str:
        limit = lists.limit(limits.LIST_MAX)
        after = lists.pair("after")
        with parts.database.snapshot() as reading:
            rows = contents.listed_projects(reading, now=parts.clock.now_us(), after=after, limit=limit)
        projects = [dict(row) for row in rows]
        cursor = f"{projects[-1]['workspace']}/{projects[-1]['name']}" if projects else ""
        return render_template(
            "projects.html", projects=projects, following=_following(projects, limit, cursor)
        )

    @routes.get("/projects/<workspace>/<project>")
    @needs("read")
    @takes("limit", "after")
    def project(workspace: str, project: str) -> str:
        with parts.database.snapshot() as reading:
            return _project(reading, named(reading, workspace, project), parts.clock.now_us())

    @routes.get("/projects/<workspace>/<project>/pages/<path:path>")
    @needs("read")
    @takes("include_expired")
    def page(workspace: str, project: str, path: str) -> str:
        with parts.database.snapshot() as reading:
            found, now = named(reading, workspace, project), parts.clock.now_us()
            return _page(reading, markdown, found, page_asked(reading, found, path, now=now), now)

    @routes.get("/projects/<workspace>/<project>/versions/<path:path>")
    @needs("read")
    @takes("before", "limit")
    def versions(workspace: str, project: str, path: str) -> str:
        place, before = page_path(path), lists.number("before")
        limit = lists.limit()
        with parts.database.snapshot() as reading:
            found = named(reading, workspace, project)
            first = version_lists.FIRST if before is None else before
            rows = versions_of(reading, found, place, before=first, limit=limit)
        return render_template(
            "versions.html",
            project=found,
            path=rows[0]["path"] if rows else place.path,
            versions=rows,
            following=lists.next_address(before=rows[-1]["seq"]) if len(rows) >= limit else None,
        )

    @routes.get("/projects/<workspace>/<project>/version/<version>/<path:path>")
    @needs("read")
    def version(workspace: str, project: str, version: str, path: str) -> str:
        place = page_path(path)
        with parts.database.snapshot() as reading:
            found = named(reading, workspace, project)
            row = one_version(reading, found, place, version)
        body = row["content"][row["body_start"] :]
        return render_template(
            "version.html",
            project=found,
            version=row,
            html=markdown.html(body, page_path(row["path"]), row["title"], _locate(found, ())),
        )

    @routes.get("/search")
    @needs("read")
    @takes("q", "scope")
    def search() -> str:
        text, scope = lists.given("q") or "", lists.given("scope") or ""
        found = found_for(
            parts,
            text,
            lambda reading: [named(reading, *_pair(scope))] if scope else None,
            limit=_HITS,
        )
        shown = [
            asdict(hit) | {"title": recalled.unfenced(hit.title)} for hit in (found.hits or found.raw_hits)
        ]
        return render_template(
            "search.html",
            text=text[: limits.QUERY_MAX_CHARS],
            scope=scope,
            hits=shown,
            is_raw=not found.hits,
            failed=found.streams_failed,
        )


def named(reading: Snapshot, workspace: str | None, project: str | None) -> Project:
    return project_for(reading, Asker(principal=current().principal), workspace, project)


def _pair(scope: str) -> tuple[str, str]:
    workspace, _, project = scope.partition("/")
    return workspace, project


def _following(rows: Sequence[Any], limit: int, cursor: str) -> str | None:
    return lists.next_address(after=cursor) if len(rows) >= limit else None


def _project(reading: Snapshot, found: Project, now: int) -> str:
    limit = lists.limit(limits.LIST_MAX)
    pages = contents.listed_pages(reading, found.id, now=now, after=lists.given("after") or "", limit=limit)
    for row in pages:
        row["folder"], _, row["name"] = row["path"].rpartition("/")
    waiting = handoffs.listed(reading, project_id=found.id, state="open", owner=current().principal, limit=1)
    return render_template(
        "project.html",
        project=found,
        pages=pages,
        following=_following(pages, limit, pages[-1]["path_key"] if pages else ""),
        counts=searching.page_counts(reading, found.id),
        totals=briefing.totals(reading, found.id),
        recent=searching.recent_pages(reading, found.id, now=now, limit=_RECENT),
        handoff=told_handoff(waiting[0]) if waiting else None,
        health=health.of_project(
            reading,
            found,
            now=now,
            untouched_since=now - limits.STALE_DAYS * _DAY_US,
            limit=limits.HEALTH_PAGES_MAX,
        ),
    )


def _page(reading: Snapshot, markdown: Markdown, found: Project, stored: StoredPage, now: int) -> str:
    place = page_path(stored.path)
    outgoing = links.outgoing(reading, stored.id, now=now, limit=limits.LINKS_SHOWN_MAX)
    return render_template(
        "page.html",
        project=found,
        page=stored,
        html=markdown.html(stored.body, place, stored.title, _locate(found, outgoing)),
        author=version_row(reading, stored.version_id)["actor"],
        versions=versions_of(reading, found, place, before=version_lists.FIRST, limit=_VERSIONS),
        more_versions=_VERSIONS,
        head=stored.content[: stored.body_start].strip().strip("-").strip(),
        outgoing=links.each_once(outgoing),
        entry=knowledge.by_page(reading, stored.id),
        incoming=links.incoming(reading, found, place.key, now=now, limit=limits.LINKS_SHOWN_MAX),
        now=now,
    )


def _locate(found: Project, outgoing: Sequence[LinkedPage]) -> Callable[[PageLink], tuple[str, bool]]:
    ends = {(end.workspace, end.project, end.said): end for end in outgoing}

    def locate(link: PageLink) -> tuple[str, bool]:
        project = link.project or found.name
        workspace = link.workspace or found.workspace
        end = ends.get((workspace, project, link.target.key))
        path = end.path if end else link.target.path
        address = url_for("ui.page", workspace=workspace, project=project, path=path)
        return address, end is None or end.page_id is not None

    return locate


def told_handoff(row: Mapping[str, Any]) -> dict[str, Any]:
    return handoff_shape(row) | {"at": row["created_at"]}

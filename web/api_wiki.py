"""`/api/v1`, the read side of the wiki: workspaces, projects, pages, what changed, where a project stands."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

import msgspec
from flask import Blueprint, Response, request

from memory_core import limits
from memory_core.clock import MICROSECONDS, rfc3339
from memory_core.domain.page import page_path
from memory_core.domain.project import Project
from memory_core.ids import id_text
from memory_core.recall.scope import Asker, project_for
from memory_core.store import contents, handoffs, health, links
from memory_core.store.database import Snapshot
from memory_core.store.links import LinkedPage
from memory_core.store.pages import StoredPage, version_row
from memory_core.store.searching import recent_pages
from memory_core.tools._pages import shown_front_matter
from web import lists
from web.answers import json_answer
from web.auth import current, needs
from web.calls import CALLER
from web.pages import page_asked
from web.parts import Parts
from web.query import takes
from web.shapes import HANDOFF_STATES, handoff_shape, time_text

_DAY_US = 86_400 * MICROSECONDS
_PROJECT = "/workspaces/<workspace>/projects/<project>"


def blueprint(parts: Parts) -> Blueprint:
    routes = Blueprint("api_wiki", __name__, url_prefix="/api/v1")
    _lists(routes, parts)
    _pages(routes, parts)
    _standing(routes, parts)
    return routes


def _lists(routes: Blueprint, parts: Parts) -> None:
    @routes.get("/workspaces")
    @needs("read")
    @takes("after", "limit")
    def _workspaces() -> Response:
        limit = lists.limit()
        with parts.database.snapshot() as reading:
            rows = contents.listed_workspaces(
                reading, now=parts.clock.now_us(), after=lists.given("after") or "", limit=limit
            )
        items = [
            {
                "workspace_name": row["name"],
                "project_count": row["project_count"],
                "page_count": row["page_count"],
                "last_updated": time_text(row["last_updated"]),
            }
            for row in rows
        ]
        return lists.listed(
            items, limit, headers=kept(limits.LIST_CACHE_SECONDS), after=rows[-1]["name"] if rows else None
        )

    @routes.get("/projects")
    @needs("read")
    @takes("workspace", "after", "limit")
    def _projects() -> Response:
        limit = lists.limit()
        cursor = lists.pair("after")
        with parts.database.snapshot() as reading:
            rows = contents.listed_projects(
                reading,
                now=parts.clock.now_us(),
                workspace=lists.given("workspace"),
                after=cursor,
                limit=limit,
            )
        items = [
            {
                "workspace_name": row["workspace"],
                "project_name": row["name"],
                "page_count": row["page_count"],
                "last_updated": time_text(row["last_updated"]),
            }
            for row in rows
        ]
        following = f"{rows[-1]['workspace']}/{rows[-1]['name']}" if rows else None
        return lists.listed(items, limit, headers=kept(limits.LIST_CACHE_SECONDS), after=following)


def _pages(routes: Blueprint, parts: Parts) -> None:
    @routes.get(f"{_PROJECT}/pages")
    @needs("read")
    @takes("after", "limit")
    def _listed(workspace: str, project: str) -> Response:
        limit = lists.limit()
        with parts.database.snapshot() as reading:
            rows = contents.listed_pages(
                reading,
                _named(reading, workspace, project).id,
                now=parts.clock.now_us(),
                after=lists.given("after") or "",
                limit=limit,
            )
        items = [
            {**{name: row[name] for name in ("path", "title", "kind", "tier")}, **_updated(row)}
            for row in rows
        ]
        cursor = rows[-1]["path_key"] if rows else None
        return lists.listed(items, limit, headers=kept(limits.PAGES_CACHE_SECONDS), after=cursor)

    @routes.get(f"{_PROJECT}/pages/<path:path>")
    @needs("read")
    @takes("include_expired")
    def _page(workspace: str, project: str, path: str) -> Response:
        now = parts.clock.now_us()
        with parts.database.snapshot() as reading:
            found = _named(reading, workspace, project)
            told = _told(reading, found, page_asked(reading, found, path, now=now), now)
        return tagged(told, kept(limits.PAGE_CACHE_SECONDS))

    @routes.get(f"{_PROJECT}/recent")
    @needs("read")
    @takes("limit")
    def _recent(workspace: str, project: str) -> Response:
        limit = lists.limit(limits.RESULTS_DEFAULT, limits.RESULTS_MAX)
        with parts.database.snapshot() as reading:
            found = _named(reading, workspace, project)
            rows = recent_pages(reading, found.id, now=parts.clock.now_us(), limit=limit)
        items = [{**{name: row[name] for name in ("path", "title", "kind")}, **_updated(row)} for row in rows]
        return json_answer(items, headers=kept(limits.LIST_CACHE_SECONDS))


def _standing(routes: Blueprint, parts: Parts) -> None:
    @routes.get(f"{_PROJECT}/briefing")
    @needs("read")
    @takes("limit")
    def _briefing(workspace: str, project: str) -> Response:
        return json_answer(_brief(parts, workspace, project))

    @routes.get(f"{_PROJECT}/overview")
    @needs("read")
    @takes("limit")
    def _overview(workspace: str, project: str) -> Response:
        now = parts.clock.now_us()
        with parts.database.snapshot() as reading:
            found = _named(reading, workspace, project)
            open_ones = handoffs.listed(
                reading, project_id=found.id, state="open", owner=current().principal, limit=1
            )
            state = health.of_project(
                reading,
                found,
                now=now,
                untouched_since=now - limits.STALE_DAYS * _DAY_US,
                limit=limits.HEALTH_PAGES_MAX,
            )
        return json_answer(
            {
                "handoff": handoff_shape(open_ones[0]) if open_ones else None,
                "briefing": _brief(parts, workspace, project),
                "health": _health(state),
            }
        )

    @routes.get(f"{_PROJECT}/handoffs")
    @needs("read")
    @takes("state", "before", "limit")
    def _handoffs(workspace: str, project: str) -> Response:
        state, limit = lists.state(*HANDOFF_STATES), lists.limit()
        with parts.database.snapshot() as reading:
            rows = handoffs.listed(
                reading,
                project_id=_named(reading, workspace, project).id,
                state=state,
                owner=current().principal,
                before=lists.number("before"),
                limit=limit,
            )
        return lists.listed(
            [handoff_shape(row) for row in rows], limit, before=rows[-1]["created_at"] if rows else None
        )


def _named(reading: Snapshot, workspace: str, project: str) -> Project:
    return project_for(reading, Asker(principal=current().principal), workspace, project)


def _brief(parts: Parts, workspace: str, project: str) -> Mapping[str, Any]:
    arguments = {
        "workspace": workspace,
        "project": project,
        "recent_pages_limit": lists.limit(limits.RESULTS_DEFAULT, limits.RESULTS_MAX),
    }
    return parts.call("memory_briefing", arguments, {**request.environ, CALLER: current()})


def _told(reading: Snapshot, project: Project, page: StoredPage, now: int) -> dict[str, Any]:
    version = version_row(reading, page.version_id)
    shown, left_out = shown_front_matter(page)
    return {
        "workspace": project.workspace,
        "project": project.name,
        "path": page.path,
        "title": page.title,
        "kind": page.kind,
        "tier": str(page.tier),
        "tags": list(page.tags),
        "pinned": page.pinned,
        "created_at": rfc3339(page.created_at),
        "updated_at": rfc3339(page.updated_at),
        "expires_at": time_text(page.expires_at),
        "version_id": id_text(page.version_id),
        "supersedes": id_text(version["supersedes"]) if version["supersedes"] else None,
        "author": version["actor"],
        "frontmatter": shown,
        "frontmatter_left_out": left_out,
        # As stored, not as on disk: what a person wrote into the file is redacted here.
        "body_markdown": page.body,
        "links": _linked(links.outgoing(reading, page.id, now=now, limit=limits.LINKS_SHOWN_MAX)),
        "backlinks": _linked(
            links.incoming(reading, project, page_path(page.path).key, now=now, limit=limits.LINKS_SHOWN_MAX)
        ),
    }


def _linked(ends: Iterable[LinkedPage]) -> list[dict[str, Any]]:
    """A page that is not there has neither title nor kind."""
    return [
        {name: value for name, value in asdict(end).items() if name not in ("page_id", "said")}
        | {"exists": end.page_id is not None}
        for end in links.each_once(ends)
    ]


def _health(state: health.Health) -> dict[str, Any]:
    told = {name: getattr(state, name) for name in ("stale", "duplicates", "orphans")}
    for name in ("stale_pages", "duplicate_pages", "orphan_pages"):
        told[name] = [
            {key: row[key] for key in ("path", "title", "kind")} | _updated(row)
            for row in getattr(state, name)
        ]
    return told


def _updated(row: Mapping[str, Any]) -> dict[str, str]:
    return {"updated_at": rfc3339(row["updated_at"])}


def kept(seconds: int) -> dict[str, str]:
    """A browser may keep the answer for itself so long, for the one who asked."""
    return {"Cache-Control": f"private, max-age={seconds}", "Vary": "Authorization, Cookie"}


def tagged(value: Any, headers: Mapping[str, str]) -> Response:
    """`value` with a strong ETag over all its bytes; 304 to one who has them."""
    response = json_answer(value, headers=headers)
    response.set_etag(hashlib.sha256(msgspec.json.encode(value)).hexdigest())
    response.make_conditional(request)
    return response

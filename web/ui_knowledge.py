"""Pages of `/ui` that show what is known in a project, and one entry with everything that was said under its key."""

from __future__ import annotations

from flask import Blueprint, render_template

from memory_core import limits
from memory_core.errors import NotFound
from memory_core.ids import id_bytes
from memory_core.store import knowledge, knowledge_lists
from memory_core.store.knowledge_lists import Scope
from web import lists
from web.api_knowledge import cursor_said, cursor_text
from web.auth import needs
from web.parts import Parts
from web.query import takes
from web.ui_wiki import named

_STATES = ("active", "forgotten")
_VERSIONS = 20


def add(routes: Blueprint, parts: Parts) -> None:
    @routes.get("/projects/<workspace>/<project>/knowledge", endpoint="knowledge")
    @needs("read")
    @takes("limit", "state", "after")
    def _knowledge(workspace: str, project: str) -> str:
        limit, state = (
            lists.limit(limits.KNOWLEDGE_LIST_MAX, limits.KNOWLEDGE_LIST_MAX),
            lists.state(*_STATES),
        )
        is_forgotten = state == "forgotten"
        with parts.database.snapshot() as reading:
            found = named(reading, workspace, project)
            listed = knowledge_lists.listed(
                reading,
                Scope(project_id=found.id),
                limit=limit,
                after=cursor_said(lists.given("after")),
                forgotten=is_forgotten,
            )
        following = lists.next_address(after=cursor_text(listed.entries[-1])) if listed.more else None
        return render_template(
            "knowledge.html",
            project=found,
            entries=listed.entries,
            is_forgotten=is_forgotten,
            most=limits.KNOWLEDGE_EXCERPT_MAX_CHARS,
            following=following,
            now=parts.clock.now_us(),
        )

    @routes.get("/knowledge/<text>")
    @needs("read")
    @takes("before")
    def entry(text: str) -> str:
        before = lists.number("before")
        with parts.database.snapshot() as reading:
            found = knowledge.by_id(reading, id_bytes(text))
            if found is None:
                raise NotFound("Nothing is known under that id (any more).")
            versions = knowledge.history(
                reading,
                found.id,
                before=limits.KNOWLEDGE_VERSION_MAX + 1 if before is None else before,
                limit=_VERSIONS,
            )
            tombstones = knowledge.tombstones(reading, found.id, limit=_VERSIONS)
        following = lists.next_address(before=versions[-1].version) if len(versions) == _VERSIONS else None
        return render_template(
            "entry.html",
            entry=found,
            versions=versions,
            tombstones=tombstones,
            following=following,
            now=parts.clock.now_us(),
        )

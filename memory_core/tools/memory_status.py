"""How the memory is doing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from memory_core.clock import rfc3339
from memory_core.errors import NotFound
from memory_core.recall.scope import project_for
from memory_core.store import handoffs, observations, sessions
from memory_core.store.outbox import promise_count
from memory_core.store.searching import last_version_at, page_counts
from memory_core.store.transaction import Reading
from memory_core.tools import Tool, ToolContext, tools
from memory_core.tools._schema import ProjectName, Workspace
from memory_core.tools._scope import asker

#: Causes of versions that a model made of sessions.
_CONSOLIDATION = "consolidation"


@dataclass(frozen=True, kw_only=True)
class Arguments:
    project: ProjectName | None = None
    workspace: Workspace | None = None


@dataclass(frozen=True, kw_only=True)
class Counts:
    pages_latest: int
    pages_all: int
    sessions: int
    sessions_open: int
    observations: int
    handoffs_open: int


@dataclass(frozen=True, kw_only=True)
class Answer:
    counts: Counts
    #: `workspace/project` that the counts are of; `all` when no project is given or known.
    scope: str
    #: ok, or degraded with the parts that are away in `health`.
    status: str
    health: dict[str, Any]
    #: What a search asks.
    streams_active: list[str]
    #: Files that the wiki's table promised and that are not on disk yet.
    files_pending: int
    #: Commands that wait for the writer: entries, bytes, age of the oldest.
    backlog: dict[str, Any] = field(default_factory=dict[str, Any])
    last_event: str | None = None
    #: When a session page was last written.
    last_session_page: str | None = None
    #: When a model last consolidated sessions into pages; absent: never.
    last_consolidation: str | None = None


def run(arguments: Arguments, context: ToolContext) -> Mapping[str, Any]:
    vitals = dict(context.vitals())
    backlog = vitals.pop("backlog", None)
    with context.database.snapshot() as reading:
        scope, project_id = _scope(reading, arguments, context)
        session_counts = sessions.counts(reading, project_id)
        handoff_counts = handoffs.counts(reading, project_id, owner=context.principal)
        return {
            "counts": {
                **page_counts(reading, project_id),
                "sessions": session_counts["total"],
                "sessions_open": session_counts["open"] or 0,
                "observations": observations.count(reading, project_id)["count"],
                "handoffs_open": handoff_counts["open"] + handoff_counts["offered"],
            },
            "scope": scope,
            "status": "degraded" if _away(vitals) else "ok",
            "health": vitals,
            "streams_active": ["pages_strict", "pages_relaxed", "observations"],
            "files_pending": promise_count(reading),
            "backlog": backlog or {},
            "last_event": _time(session_counts["last_event_at"]),
            "last_session_page": _time(last_version_at(reading, "session", project_id)),
            "last_consolidation": _time(last_version_at(reading, _CONSOLIDATION, project_id)),
        }


def _scope(reading: Reading, arguments: Arguments, context: ToolContext) -> tuple[str, bytes | None]:
    try:
        project = project_for(reading, asker(context), arguments.workspace, arguments.project)
    except NotFound:
        if arguments.project or arguments.workspace:
            raise
        return "all", None
    return f"{project.workspace}/{project.name}", project.id


def _away(vitals: Mapping[str, Any]) -> bool:
    for value in vitals.values():
        if isinstance(value, dict) and cast("dict[str, Any]", value).get("status", "ok") != "ok":
            return True
    return False


def _time(us: int | None) -> str | None:
    return None if us is None else rfc3339(us)


tools.add("memory_status")(
    Tool(
        name="memory_status",
        title="State of the memory",
        description=(
            "Say whether the memory works and what it holds: health of its parts, counts of pages, sessions and observations,"
            " what waits to be written, when it was last fed. Use it when something that should be remembered is not found."
        ),
        arguments=Arguments,
        answer=Answer,
        run=run,
        aliases={},
        is_read_only=True,
    )
)

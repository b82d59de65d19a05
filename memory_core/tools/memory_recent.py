"""What changed last."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from memory_core import limits
from memory_core.ids import id_bytes
from memory_core.recall.recent import RecentPage, recent
from memory_core.recall.scope import global_project, project_for
from memory_core.tools import Tool, ToolContext, tools
from memory_core.tools._answers import NOTICE, Room, clamped
from memory_core.tools._schema import Limit, ProjectName, Workspace
from memory_core.tools._scope import asker


@dataclass(frozen=True, kw_only=True)
class Arguments:
    limit: Limit = limits.RESULTS_DEFAULT
    project: ProjectName | None = None
    workspace: Workspace | None = None


@dataclass(frozen=True, kw_only=True)
class Answer:
    hits: list[RecentPage]
    #: What the texts in snippets are.
    notice: str
    #: Of the pages that hold for every project.
    global_scope_hits: list[RecentPage] = field(default_factory=list[RecentPage])
    hint: str | None = None


def run(arguments: Arguments, context: ToolContext) -> Mapping[str, Any]:
    now = context.clock.now_us()
    with context.database.snapshot() as reading:
        project = project_for(reading, asker(context), arguments.workspace, arguments.project)
        hits = recent(reading, project, now=now, limit=clamped(arguments.limit))
        shared = None if arguments.project else global_project(reading)
        more = recent(reading, shared, now=now, limit=3) if shared and shared.id != project.id else []
    room = Room()
    room.spend(NOTICE)
    more = room.fitting(more)
    shown = room.fitting(hits)
    context.came_upon([id_bytes(page.id) for page in (*shown, *more)])
    return {
        "hits": shown,
        "global_scope_hits": more,
        "notice": NOTICE,
        "hint": None if len(shown) == len(hits) else "the answer was cut to its size limit",
    }


tools.add("memory_recent")(
    Tool(
        name="memory_recent",
        title="Recently changed pages",
        description=(
            "List the pages of the current project that changed last, with the beginning of each. Use it to see what is going"
            " on when you have no question yet; with one, use memory_query."
        ),
        arguments=Arguments,
        answer=Answer,
        run=run,
        aliases={"n": "limit"},
        is_read_only=True,
    )
)

"""Judging a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from memory_core.commands.feedback import GiveFeedback
from memory_core.domain import recalled
from memory_core.recall.scope import project_for
from memory_core.tools import Tool, ToolContext, tools
from memory_core.tools._schema import ProjectName, Workspace, described
from memory_core.tools._scope import asker


@dataclass(frozen=True, kw_only=True)
class Arguments:
    path: Annotated[str, described("Path of the page, as a hit gives it.")]
    signal: Annotated[
        Literal["helpful", "not_helpful", "stale", "wrong"],
        described("helpful, not_helpful, stale (was true once) or wrong."),
    ]
    reason: Annotated[str, described("Why, in one line of at most 500 characters.")] | None = None
    project: ProjectName | None = None
    workspace: Workspace | None = None


@dataclass(frozen=True, kw_only=True)
class Answer:
    recorded: bool | None = None
    path: str | None = None
    page_id: str | None = None
    #: The version that was judged.
    version_id: str | None = None
    signal: str | None = None
    #: How much the page counts now, 0.25 to 2.
    salience: float | None = None
    #: Whether the page is now on the list of what wants a rewrite; it stays there until it gets one.
    routed_to_lint: bool | None = None
    #: `pending`: taken, not yet applied; ask for the command.
    status: str | None = None
    command_id: str | None = None


def run(arguments: Arguments, context: ToolContext) -> Mapping[str, Any]:
    with context.database.snapshot() as reading:
        project = project_for(reading, asker(context), arguments.workspace, arguments.project)
    return context.submit(
        GiveFeedback(
            workspace=project.workspace,
            project=project.name,
            path=arguments.path,
            signal=arguments.signal,
            reason=None if arguments.reason is None else recalled.strip(arguments.reason),
        )
    )


tools.add("memory_feedback")(
    Tool(
        name="memory_feedback",
        title="Judge a page",
        description=(
            "Say that a page helped, did not help, is out of date (stale) or wrong. What helps is found sooner; what is stale or"
            " wrong sinks and is put on the list of pages to rewrite. Use it when a page that you read turned out so. If you know"
            " what is right, write the page anew with memory_write_page instead: that answers the complaint."
        ),
        arguments=Arguments,
        answer=Answer,
        run=run,
        aliases={"comment": "reason"},
        is_read_only=False,
        is_idempotent=False,
    )
)

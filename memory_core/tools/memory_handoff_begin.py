"""Leaving a handoff."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from memory_core.commands.handoffs import BeginHandoff
from memory_core.domain import recalled
from memory_core.recall.scope import names_for_write
from memory_core.tools import Tool, ToolContext, tools
from memory_core.tools._schema import ProjectName, Workspace, described
from memory_core.tools._scope import asker, session_text


@dataclass(frozen=True, kw_only=True)
class Arguments:
    summary: Annotated[str, described("What was done and where it stands, for somebody who was not there.")]
    open_questions: Annotated[tuple[str, ...], described("What is undecided.")] = ()
    next_steps: Annotated[tuple[str, ...], described("What to do next, in order.")] = ()
    files_touched: Annotated[tuple[str, ...], described("Paths that matter.")] = ()
    cwd: Annotated[str, described("Directory that the work is in.")] | None = None
    from_agent: Annotated[str, described("Which agent you are, e.g. claude-code.")] | None = None
    to_agent: Annotated[str, described("A hint for whom it is; anybody may take it.")] | None = None
    model: Annotated[str, described("Which model you are.")] | None = None
    shared: Annotated[bool, described("For everybody who works on the project, not only for this user.")] = (
        False
    )
    project: ProjectName | None = None
    workspace: Workspace | None = None


@dataclass(frozen=True, kw_only=True)
class Answer:
    handoff_id: str | None = None
    state: str | None = None
    workspace: str | None = None
    project: str | None = None
    created_at: str | None = None
    #: `pending`: taken, not yet applied; ask for the command.
    status: str | None = None
    command_id: str | None = None


def run(arguments: Arguments, context: ToolContext) -> Mapping[str, Any]:
    with context.database.snapshot() as reading:
        workspace, project = names_for_write(reading, asker(context), arguments.workspace, arguments.project)
    return context.submit(
        BeginHandoff(
            summary=recalled.strip(arguments.summary),
            open_questions=tuple(map(recalled.strip, arguments.open_questions)),
            next_steps=tuple(map(recalled.strip, arguments.next_steps)),
            files_touched=arguments.files_touched,
            cwd=arguments.cwd,
            workspace=workspace,
            project=project,
            session_id=session_text(context),
            from_agent=arguments.from_agent,
            to_agent=arguments.to_agent,
            model=arguments.model,
            shared=arguments.shared,
        )
    )


tools.add("memory_handoff_begin")(
    Tool(
        name="memory_handoff_begin",
        title="Leave a handoff",
        description=(
            "Leave a handoff for the next session in this project, of whichever agent: what was done, what is open, what comes"
            " next. It is shown once, at that session's start. Use it when the user says that another session or agent goes"
            " on. A session that just ends leaves one by itself."
        ),
        arguments=Arguments,
        answer=Answer,
        run=run,
        aliases={"questions": "open_questions", "steps": "next_steps", "files": "files_touched"},
        is_read_only=False,
        is_idempotent=False,
    )
)

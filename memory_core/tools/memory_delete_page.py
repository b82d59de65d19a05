"""Deleting one page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from memory_core.commands.pages import DeletePage
from memory_core.recall.scope import project_for
from memory_core.tools import Tool, ToolContext, tools
from memory_core.tools._schema import ProjectName, Workspace, described
from memory_core.tools._scope import asker


@dataclass(frozen=True, kw_only=True)
class Arguments:
    path: Annotated[str, described("Path of the page, as a hit gives it.")]
    base_version: (
        Annotated[str, described("version_id of the page as you read it; a newer one is then a conflict.")]
        | None
    ) = None
    project: ProjectName | None = None
    workspace: Workspace | None = None


@dataclass(frozen=True, kw_only=True)
class Answer:
    page_id: str | None = None
    path: str | None = None
    workspace: str | None = None
    project: str | None = None
    #: False where somebody's edit of the file, not seen before, kept the page.
    deleted: bool | None = None
    #: Whether there was such a page.
    existed: bool | None = None
    #: Checkpoints before and after: the first brings the page back (`memoryd restore-page`). Their commits follow within seconds.
    pre_checkpoint: str | None = None
    checkpoint: str | None = None
    #: `pending`: taken, not yet applied; ask for the command. `superseded`: an edit kept the page. `file_waits`: deleted, but its file
    #: cannot be taken away yet. `note` says what to do.
    status: str | None = None
    newest_version_id: str | None = None
    note: str | None = None
    command_id: str | None = None


def run(arguments: Arguments, context: ToolContext) -> Mapping[str, Any]:
    with context.database.snapshot() as reading:
        project = project_for(reading, asker(context), arguments.workspace, arguments.project)
    answer = context.submit(
        DeletePage(
            workspace=project.workspace,
            project=project.name,
            path=arguments.path,
            base_version=arguments.base_version,
        )
    )
    return context.told_of_edit(answer)


tools.add("memory_delete_page")(
    Tool(
        name="memory_delete_page",
        title="Delete a page",
        description=(
            "Delete one page: its file goes away and nothing finds it any more. Only when the user asks for it or the page is"
            " plainly wrong and superseded; a page that is merely out of date is better written anew."
        ),
        arguments=Arguments,
        answer=Answer,
        run=run,
        aliases={},
        is_read_only=False,
        is_destructive=True,
    )
)

"""Writing one page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from memory_core import limits
from memory_core.commands.pages import WritePage
from memory_core.domain import place, recalled
from memory_core.errors import Invalid
from memory_core.recall.scope import names_for_write
from memory_core.tools import Tool, ToolContext, tools
from memory_core.tools._schema import ProjectName, Workspace, described
from memory_core.tools._scope import asker, session_text


@dataclass(frozen=True, kw_only=True)
class Arguments:
    body: Annotated[str, described("The whole page in Markdown, beginning with a `# Title` line.")]
    path: (
        Annotated[
            str,
            described(
                "Where it goes, for example decisions/queue.md; folders say the kind: decisions, gotchas, concepts,"
                " procedures, notes, _rules. Left out: notes/ and a name made of the title."
            ),
        ]
        | None
    ) = None
    title: Annotated[str, described("Only when the body has no `# Title` line.")] | None = None
    kind: Annotated[str, described("Only when the folder does not say it.")] | None = None
    tier: Annotated[str, described("working, episodic, semantic (default) or procedural.")] | None = None
    tags: Annotated[tuple[str, ...], described("Replaces the page's tags.")] | None = None
    pinned: Annotated[bool, described("Never forgotten by age.")] | None = None
    expires_at: (
        Annotated[str, described("When it stops being true: 2031-05-01T12:00:00Z, or a day (its end, UTC).")]
        | None
    ) = None
    base_version: (
        Annotated[str, described("version_id of the page as you read it; a newer one is then a conflict.")]
        | None
    ) = None
    scope: Annotated[str, described('"global": holds for every project; then without project.')] | None = None
    project: ProjectName | None = None
    workspace: Workspace | None = None


@dataclass(frozen=True, kw_only=True)
class Answer:
    page_id: str | None = None
    version_id: str | None = None
    path: str | None = None
    workspace: str | None = None
    project: str | None = None
    #: False when the page said exactly this already.
    changed: bool | None = None
    #: `indexed`: it can be found now. `file_waits`: that too, but the folder of its file is away or something stands in its place; `note` says why.
    index_status: str | None = None
    #: `pending`: taken, not yet applied; ask for the command. `superseded`: somebody's edit of the page's file was newer than anybody knew; `note` says what to do.
    status: str | None = None
    newest_version_id: str | None = None
    note: str | None = None
    command_id: str | None = None


def run(arguments: Arguments, context: ToolContext) -> Mapping[str, Any]:
    if recalled.strip(arguments.body) != arguments.body:
        # Stripping it without a word would write a page that lost what the agent meant to keep.
        raise Invalid(
            "the body still holds recalled text between memoryd's markers; "
            "send the whole text of the page, without the lines of the markers"
        )
    if not arguments.body.strip():
        raise Invalid("the body is empty; to take a page away use memory_delete_page")
    if len(arguments.body.encode()) > limits.PAGE_BODY_MAX_BYTES:
        # Here, not only behind the queue: redaction comes first and keeps no more than this of a text.
        raise Invalid(f"a page has at most {limits.PAGE_BODY_MAX_BYTES // limits.KIB} KB; split it")
    workspace, project = _target(arguments, context)
    answer = context.submit(
        WritePage(
            workspace=workspace,
            project=project,
            body=arguments.body,
            path=arguments.path,
            title=arguments.title,
            kind=arguments.kind,
            tier=arguments.tier,
            tags=arguments.tags,
            pinned=arguments.pinned,
            expires_at=arguments.expires_at,
            base_version=arguments.base_version,
            session_id=session_text(context),
        )
    )
    return context.told_of_edit(answer)


def _target(arguments: Arguments, context: ToolContext) -> tuple[str, str]:
    if arguments.scope is not None:
        if arguments.scope != "global":
            raise Invalid('scope is "global" or left out')
        if arguments.project or arguments.workspace:
            raise Invalid('scope "global" goes without project and workspace')
        return place.DEFAULT_WORKSPACE, place.GLOBAL_PROJECT
    with context.database.snapshot() as reading:
        return names_for_write(reading, asker(context), arguments.workspace, arguments.project)


tools.add("memory_write_page")(
    Tool(
        name="memory_write_page",
        title="Write a page",
        description=(
            "Write or replace one page of the project's wiki: a decision with its reasons, a gotcha, how something works or is"
            " done. For what stays true and is hard to find out again; what happens in a session is recorded by itself. An"
            ' existing path gets a new version, the old one is kept. A preference for all projects: scope "global".'
        ),
        arguments=Arguments,
        answer=Answer,
        run=run,
        aliases={"content": "body", "text": "body"},
        is_read_only=False,
        is_destructive=False,
        is_idempotent=True,
    )
)

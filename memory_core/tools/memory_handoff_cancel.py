"""Closing a handoff."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from memory_core.commands.handoffs import CancelHandoff
from memory_core.tools import Tool, ToolContext, tools
from memory_core.tools._schema import described


@dataclass(frozen=True, kw_only=True)
class Arguments:
    handoff_id: Annotated[str, described("As memory_handoff_begin answered.")]
    any_owner: Annotated[bool, described("Also another user's; needs an admin token.")] = False


@dataclass(frozen=True, kw_only=True)
class Answer:
    handoff_id: str | None = None
    cancelled: bool | None = None
    #: Its state now: open, offered, accepted or expired.
    state: str | None = None
    #: `pending`: taken, not yet applied; ask for the command.
    status: str | None = None
    command_id: str | None = None


def run(arguments: Arguments, context: ToolContext) -> Mapping[str, Any]:
    return context.submit(CancelHandoff(handoff_id=arguments.handoff_id, any_owner=arguments.any_owner))


tools.add("memory_handoff_cancel")(
    Tool(
        name="memory_handoff_cancel",
        title="Close a handoff",
        description="Close a handoff that nobody is to get any more, for example one that you left by mistake.",
        arguments=Arguments,
        answer=Answer,
        run=run,
        aliases={"id": "handoff_id"},
        is_read_only=False,
        is_destructive=True,
    )
)

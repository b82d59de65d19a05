"""MCP tools: one file per tool, from validated input to output. A tool reads through a snapshot and
writes by submitting a command; it knows neither HTTP nor the queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from memory_core.clock import Clock
from memory_core.errors import Forbidden
from memory_core.recall.reranking import Judge
from memory_core.recall.vectors import QuestionVector
from memory_core.registry import Registry
from memory_core.store.database import Database


class ToolContext(Protocol):
    """What a tool may use while it answers one call."""

    @property
    def database(self) -> Database: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def principal(self) -> str: ...

    @property
    def token_scope(self) -> str: ...

    @property
    def session_id(self) -> bytes | None:
        """The session that asks, where the client says so."""
        ...

    @property
    def directory(self) -> str | None:
        """The directory of the one who asks, its repository's root where it lies in one; paths are the client's."""
        ...

    def submit(self, command: object) -> Mapping[str, Any]:
        """Redact, append and wait for a command: its answer, or `{"status": "pending", "command_id": …}`
        when the wait is over first. Raises the error that a refusal stands for, `Unavailable`, `OutcomeUnknown`."""
        ...

    def told_of_edit(self, answer: Mapping[str, Any]) -> Mapping[str, Any]:
        """The answer of a page write, with what to do where an edit of its file that nobody had seen is above it."""
        ...

    def came_upon(self, page_ids: Sequence[bytes]) -> None:
        """These pages are shown as hits: they count as read by the one who asks. Returns at once and never fails."""
        ...

    def question_vector(self, text: str) -> QuestionVector | None:
        """The embedding of a question; None where there is nothing to compare it with. Takes a second or two at most.
        Raises a `CoreError`: then one does without."""
        ...

    @property
    def judge(self) -> Judge | None:
        """What judges the best hits once more, where that is configured."""
        ...

    def vitals(self) -> Mapping[str, Any]:
        """Facts about the running system: broker, backlog, writer, version."""
        ...


class RunTool(Protocol):
    def __call__(self, arguments: Any, context: ToolContext, /) -> Mapping[str, Any]: ...


@dataclass(frozen=True, kw_only=True)
class Tool:
    """One tool: `arguments` is a frozen dataclass (its JSON schema is the input schema), `answer` one for the output schema."""

    name: str
    title: str
    #: What an agent reads to decide when to call it.
    description: str
    arguments: type[Any]
    answer: type[Any]
    run: RunTool
    #: Other spellings of argument names, e.g. `q` for `query`.
    aliases: Mapping[str, str]
    is_read_only: bool
    is_destructive: bool = False
    is_idempotent: bool = True


tools: Registry[Tool] = Registry("tool")

_MAY_READ = {"admin", "write", "read"}
_MAY_WRITE = {"admin", "write"}


def call_tool(name: str, arguments: Mapping[str, Any], context: ToolContext) -> dict[str, Any]:
    """Run a registered tool (`registry.discover` this package first): the one entry for MCP and the HTTP API.

    The answer is plain JSON values that fit the tool's output schema. Raises `NotFound` (no such tool, no such
    thing), `Invalid`, `Conflict`, `Forbidden`, `Unavailable`, `OutcomeUnknown`; each message says what to do.
    """
    # Both need the names above.
    from memory_core.tools._answers import trimmed
    from memory_core.tools._arguments import read_arguments

    tool = tools.get(name)
    check_may_call(tool, context.token_scope)
    return trimmed(tool.run(read_arguments(tool, arguments), context), tool.answer)


def check_may_call(tool: Tool, token_scope: str) -> None:
    """`Forbidden` when a token of that scope may not call the tool."""
    if token_scope not in (_MAY_READ if tool.is_read_only else _MAY_WRITE):
        needed = "read" if tool.is_read_only else "write"
        raise Forbidden(f"{tool.name} needs a token of scope {needed!r}; this one has {token_scope!r}")

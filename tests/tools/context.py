"""A tool's context with the writer right behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jsonschema

import memory_core.tools
from memory_core import errors
from memory_core.clock import Clock
from memory_core.commands.unseen_edits import UnseenEdits
from memory_core.domain.command import Refusal
from memory_core.registry import discover
from memory_core.store.database import Database
from memory_core.tools import call_tool, tools
from memory_core.tools._schema import schema_of
from tests.books import Books

discover(memory_core.tools)
_ERRORS = {kind.code: kind for kind in (errors.Invalid, errors.NotFound, errors.Conflict, errors.Forbidden)}


@dataclass
class Context:
    """A tool's context with the writer right behind it."""

    books: Books
    principal: str = "ada"
    token_scope: str = "write"
    session_id: bytes | None = None
    directory: str | None = None
    sent: list[object] = field(default_factory=list[object])
    is_slow: bool = False
    #: What embeds questions.
    vectors: Callable[[str], Any] = lambda _text: None
    #: Ids of pages that each call had come upon.
    shown: list[list[bytes]] = field(default_factory=list[list[bytes]])

    @property
    def database(self) -> Database:
        return self.books.database

    @property
    def clock(self) -> Clock:
        return self.books.clock

    def submit(self, command: object) -> Mapping[str, Any]:
        self.sent.append(command)
        if self.is_slow:
            return {"status": "pending", "command_id": "c"}
        answer = self.books.apply(command, principal=self.principal, token_scope=self.token_scope)
        if isinstance(answer, Refusal):
            raise _ERRORS[answer.code](answer.message)
        return answer

    @property
    def judge(self) -> Any:
        return None

    def question_vector(self, text: str) -> Any:
        return self.vectors(text)

    def told_of_edit(self, answer: Mapping[str, Any]) -> Mapping[str, Any]:
        return UnseenEdits(self.books.wiki, self.database, self.clock).told(answer)

    def came_upon(self, page_ids: Sequence[bytes]) -> None:
        self.shown.append(list(page_ids))

    def vitals(self) -> Mapping[str, Any]:
        return {"version": "1", "broker": {"status": "ok"}, "backlog": {"entries": 2}}

    def call(self, name: str, **arguments: object) -> dict[str, Any]:
        answer = call_tool(name, arguments, self)
        jsonschema.validate(answer, schema_of(tools.get(name).answer))
        return answer

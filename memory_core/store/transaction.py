"""The writer's transaction: what a command's `apply` gets to work with."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import Any, Protocol

from memory_core.domain.command import Envelope
from memory_core.domain.wiki_file import Obstacle
from memory_core.ids import IdSource
from memory_core.store import driver
from memory_core.store.database import translated
from memory_core.store.statement import Row, Statement


class Reading(Protocol):
    """What a question to the database needs: a reader's snapshot or the writer's transaction."""

    def row(self, statement: Statement, **parameters: Any) -> Row | None: ...
    def rows(self, statement: Statement, **parameters: Any) -> list[Row]: ...


#: What stands where a file of the wiki (relative to its root) belongs; None when nothing does.
Look = Callable[[str], "Obstacle | None"]


class Transaction:
    """One write transaction, shared by the commands of a batch; `begin`, commit and rollback are the engine's.

    `now` is the writer's clock at the command, UTC microseconds. `envelope` is the command being
    applied (None for work that the writer originates itself). What must happen after the commit, and
    only then, is left in `rings` and `files`. `obstacle` looks at the disk.
    """

    def __init__(self, connection: Any, ids: IdSource, obstacle: Look = lambda _file: None) -> None:
        self.obstacle = obstacle
        self._connection = connection
        self._ids = ids
        self.now = 0
        self.envelope: Envelope | None = None
        #: Whether the command at hand has written: a refusal after that is a bug.
        self.wrote = False
        self._behalf: tuple[str, str] | None = None
        #: Pool queues whose doorbell is to be rung.
        self.rings: set[str] = set()
        #: Wiki files (relative to the wiki root) that the outbox now promises.
        self.files: set[str] = set()

    def new_id(self) -> bytes:
        return self._ids.new()

    @contextmanager
    def on_behalf(self, principal: str | None, token_scope: str) -> Generator[None]:
        """Rows written inside belong to `principal` and have the authority of `token_scope`: the writer finishes
        what somebody else's events began, and must not lend them its own."""
        before, self._behalf = self._behalf, (principal or self.principal, token_scope)
        try:
            yield
        finally:
            self._behalf = before

    @property
    def principal(self) -> str:
        if self._behalf:
            return self._behalf[0]
        return self.envelope.principal if self.envelope else "memoryd"

    @property
    def token_scope(self) -> str:
        if self._behalf:
            return self._behalf[1]
        return self.envelope.token_scope if self.envelope else "admin"

    def row(self, statement: Statement, **parameters: Any) -> Row | None:
        return self._execute(statement, parameters).fetchone()

    def rows(self, statement: Statement, **parameters: Any) -> list[Row]:
        return self._execute(statement, parameters).fetchall()

    def run(self, statement: Statement, **parameters: Any) -> int:
        """Execute a write; the number of rows it touched."""
        self.wrote = True
        return self._execute(statement, parameters).rowcount

    def run_many(self, statement: Statement, parameters: Iterable[dict[str, Any]]) -> None:
        self.wrote = True
        try:
            self._connection.executemany(statement.sql, [statement.parameters(p) for p in parameters])
        except (driver.Error, OverflowError) as error:
            raise translated(error) from error

    def _execute(self, statement: Statement, parameters: dict[str, Any]) -> Any:
        if statement.writes:
            self.wrote = True
        try:
            return self._connection.execute(statement.sql, statement.parameters(parameters))
        except (driver.Error, OverflowError) as error:
            raise translated(error) from error

"""The writer's transaction: what a command's `apply` gets to work with."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import Any, Protocol

from memory_core.domain.command import Envelope
from memory_core.domain.wiki_file import Obstacle
from memory_core.errors import CoreError, StorageFailed
from memory_core.ids import IdSource
from memory_core.store import driver
from memory_core.store.database import translated
from memory_core.store.statement import Row, Statement


class Reading(Protocol):
    """What a question to the database needs: a reader's snapshot or the writer's transaction."""

    def row(self, statement: Statement, **parameters: Any) -> Row | None: ...
    def rows(self, statement: Statement, **parameters: Any) -> list[Row]: ...


#: Names what a transaction knows: a row's id, or several values.
Key = bytes | tuple[bytes, ...]

#: Writes rows at the end of a transaction, all of a kind at once.
Last = Callable[["Transaction", list[dict[str, Any]]], None]

#: What stands where a file of the wiki (relative to its root) belongs; None when nothing does.
Look = Callable[[str], "Obstacle | None"]


class Transaction:
    """One write transaction, shared by the commands of a batch; `begin`, commit and rollback are the engine's.

    `now` is the writer's clock at the command, UTC microseconds. `envelope` is the command being
    applied (None for work that the writer originates itself). What must happen after the commit, and
    only then, is left in `rings` and `files`. `obstacle` looks at the disk.

    What every event of a batch writes is held back: rows to be inserted (`insert_later`) and rows that are changed again and
    again (`write_later`). Before any statement that is not `is_apart` it is written and what is `known` is forgotten, so such
    a statement sees what it would see anyway. What nobody asks for in a transaction waits for its end (`write_last`).
    Whoever commits calls `write_held` first.
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
        self._known: dict[Key, Any] = {}
        self._inserts: dict[Statement, list[dict[str, Any]]] = {}
        self._changes: dict[Key, tuple[Statement, dict[str, Any]]] = {}
        self._last: dict[Last, list[dict[str, Any]]] = {}
        #: What kept that which was held back from being written. Whatever a command that asked something made of the error (a
        #: refusal, say), it is not its doing, and nothing of this transaction may be committed.
        self.failure: CoreError | None = None
        #: Commands of the batch that did not take effect yet: principal and id (`store/command_ids.py`).
        self.unseen: set[tuple[str, bytes]] = set()
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

    def insert(self, statement: Statement, **parameters: Any) -> int:
        """Insert one row into a table that counts its rows; its number."""
        self.wrote = True
        return self._execute(statement, parameters).lastrowid

    def run_many(self, statement: Statement, parameters: Iterable[dict[str, Any]]) -> None:
        if not statement.is_apart:
            self._write_held()
        self.wrote = True
        try:
            self._connection.executemany(statement.sql, [statement.parameters(p) for p in parameters])
        except (driver.Error, OverflowError) as error:
            raise translated(error) from error

    # --- what is held back ---

    def known(self, key: Key) -> Any:
        """What was read or is held back under this key, as it is now; None where the database has to be asked."""
        return self._known.get(key)

    def know(self, key: Key, value: Any) -> None:
        """Keep what was just read, or will be written. A change of it makes another value."""
        self._known[key] = value

    def insert_later(self, statement: Statement, row: dict[str, Any]) -> None:
        """Insert a row with all others of its kind, in the order in which they came."""
        self.wrote = True
        self._inserts.setdefault(statement, []).append(row)

    def write_later(self, key: Key, row: dict[str, Any], statement: Statement) -> None:
        """What is known under `key` is now `row`, and `statement` will write it: the last row that it is given."""
        self.wrote = True
        self._known[key] = row
        self._changes[key] = (statement, row)

    def write_last(self, write: Last, row: dict[str, Any]) -> None:
        """Have `write` called with this row and all others that it was given, in their order, when everything else is
        written. No statement of this transaction sees it."""
        self.wrote = True
        self._last.setdefault(write, []).append(row)

    def write_held(self) -> None:
        """Write all that is held back, before a commit."""
        self._write_held()
        last, self._last = self._last, {}
        if last:
            self._check_open()
        for write, rows in last.items():
            write(self, rows)

    def _write_held(self) -> None:
        """Write what is held back and forget what is known. After a failure it stays held, and each further try fails too."""
        if self._inserts or self._changes:
            if self.failure is not None:
                raise self.failure
            self._check_open()
            try:
                for statement, rows in self._inserts.items():
                    self._connection.executemany(statement.sql, rows)
                for statement, row in self._changes.values():
                    self._connection.execute(statement.sql, row)
            except driver.Error as error:
                self.failure = translated(error)
                raise self.failure from error
            self._inserts, self._changes = {}, {}
        self._known = {}

    def _check_open(self) -> None:
        if not self._connection.in_transaction:
            raise StorageFailed("the transaction was ended under what it held back: an error was swallowed")

    @property
    def _is_holding(self) -> bool:
        return bool(self._known or self._inserts)

    def _execute(self, statement: Statement, parameters: dict[str, Any]) -> Any:
        if self._is_holding and not statement.is_apart:
            self._write_held()
        if statement.writes:
            self.wrote = True
        try:
            return self._connection.execute(statement.sql, statement.parameters(parameters))
        except (driver.Error, OverflowError) as error:
            raise translated(error) from error

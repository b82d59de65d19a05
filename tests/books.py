"""A writer's database with the wiki beside it, for tests of what page commands do to both."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from memory_core.clock import FakeClock
from memory_core.commands.files import StepReport, install_step
from memory_core.ids import IdSource
from memory_core.store import fulltext
from memory_core.store.database import Database, open_writer
from memory_core.store.transaction import Transaction
from memory_core.wiki.outbox import Installer
from memory_core.wiki.walk import WikiTree
from tests.factories import Store, database

T = TypeVar("T")


class Books:
    """One writer connection, a clock that moves by a second with each command, and a wiki directory."""

    def __init__(self, directory: Path) -> None:
        """New ones, or those that lie in `directory` already."""
        self.wiki = directory / "wiki"
        self.wiki.mkdir(exist_ok=True)
        path = directory / "memory.sqlite"
        clock = FakeClock()
        self.store = (
            Store(path=path, connection=open_writer(path), clock=clock, ids=IdSource(clock))
            if path.exists()
            else database(directory)
        )
        if not self.query("SELECT 1 FROM sqlite_master WHERE name = 'chunks_fts'"):
            for statement in fulltext.DDL:
                self.store.connection.execute(statement)
        self.store.obstacle = WikiTree(self.wiki).obstacle
        self.database = Database(self.store.path)
        self.clock = self.store.clock

    def transact(self, work: Callable[[Transaction], T], /) -> T:
        with self.store.transaction() as tx:
            return work(tx)

    def apply(self, command: Any, **of_envelope: Any) -> Any:
        """Apply a command as the writer would: its answer or its `Refusal`."""
        self.clock.advance(1)
        return self.store.apply(command, **{"token_scope": "write", **of_envelope})

    def install(
        self, installer: Installer | None = None, redact: Callable[[str], str] = str
    ) -> list[StepReport]:
        """Install promised files until nothing is left but what is blocked."""
        reports: list[StepReport] = []
        after = 0
        while True:
            report = install_step(self.transact, installer or Installer(self.wiki), redact, after=after)
            reports.append(report)
            if not report.more:
                return reports
            after = 0 if report.external else report.last

    def query(self, sql: str, *parameters: Any) -> list[Any]:
        return self.store.all(sql, *parameters)

    def files(self) -> dict[str, bytes]:
        """All files of the wiki but the `_meta.md` ones."""
        return {
            str(path.relative_to(self.wiki)): path.read_bytes()
            for path in sorted(self.wiki.rglob("*"))
            if path.is_file() and path.name != "_meta.md" and ".git" not in path.parts
        }

    def close(self) -> None:
        self.database.close()
        self.store.close()

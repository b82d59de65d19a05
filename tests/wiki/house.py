"""A wiki, its books, and one who looks from outside: everything of the writer but its process."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from memory_core.commands import files
from memory_core.commands.finding import Finder
from memory_core.commands.pages import WritePage
from memory_core.store.database import Database
from memory_core.wiki.compare import Comparison
from memory_core.wiki.git import Git
from memory_core.wiki.git_past import PastFiles
from memory_core.wiki.outbox import Installer
from memory_core.wiki.walk import WikiTree
from tests.books import Books
from workers.writer.engine import Stopping
from workers.writer.folders import FolderLooks
from workers.writer.outside import Outside
from workers.writer.report import BatchReport
from workers.writer.wiki import WikiFiles
from workers.writer.wiki_status import StatusFile


class BooksEngine:
    """The part of the engine that enters findings, over the books of a test."""

    def __init__(self, books: Books) -> None:
        self._books = books
        self.fails: list[Exception] = []

    def read(self, question: Any) -> Any:
        return self._books.transact(question)

    def originate(self, work: Any, report: BatchReport | None = None) -> Any:
        def run(tx: Any) -> Any:
            if self.fails:
                raise self.fails.pop()
            value = work(tx)
            if report is not None:
                report.files |= tx.files
            return value

        return self._books.transact(run)


class House:
    """`look_until_still` does what the two threads do, by turns and on the clock of the test."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(exist_ok=True)
        self.books = Books(directory)
        self.root = self.books.wiki
        self.read: list[str] = []
        self.redact = lambda text: text.replace("hunter2", "[REDACTED]")
        self.installer = Installer(self.root)
        self.engine = BooksEngine(self.books)
        self.tree = tree = WikiTree(self.root, opened=self.read.append)
        finder = Finder(
            tree,
            Database(self.books.store.path),
            Comparison(tree, self.books.clock),
            self._redacted,
            PastFiles(Git(self.root, directory)),
        )
        self.outside = Outside(
            self.engine,
            finder,
            tree.look,
            clock=self.books.clock,
            folders=FolderLooks(self.root, finder, self.books.clock),
            status=StatusFile(directory / "wiki.status.json", self.books.clock, obstacles=self._obstacles),
        )
        self.entered: Counter[str] = Counter()
        #: The writer's turn at the files, with its memory of what is in the way.
        self.files = WikiFiles(self.engine, self.installer, self._redacted, self.books.clock)
        self.outside.came_back = self.files.came_back

    def _obstacles(self) -> Mapping[str, str]:
        return self.files.obstacles()

    def _redacted(self, text: str) -> str:
        return self.redact(text)

    def look(self) -> bool:
        """One look, with the writer beside it; whether another is due at once."""
        with self._writing():
            pause, again = self.outside.look()
        self.books.clock.advance(max(pause, 0.5))
        return again

    def look_until_still(self, looks: int = 40) -> dict[str, Any]:
        """The status after as many looks as it takes."""
        for _ in range(looks):
            if not self.look():
                return self.outside.status()
        raise AssertionError(f"not still after {looks} looks: {self.outside.status()}")

    @contextmanager
    def _writing(self):
        done = threading.Event()
        failed: list[BaseException] = []

        def write() -> None:
            try:
                while not done.is_set():
                    report = BatchReport()
                    self.outside.step(report)
                    if report.files:
                        self.books.install(self.installer, self._redacted)
                    done.wait(0.002)
            except BaseException as error:
                failed.append(error)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            with suppress(Stopping):
                yield
        finally:
            done.set()
            writer.join()
        if failed:
            raise failed[0]

    # --- what people and agents do ---

    def write_page(self, path: str, body: str, project: str = "alpha") -> Any:
        answer = self.books.apply(WritePage(workspace="default", project=project, path=path, body=body))
        self.books.install(self.installer, self._redacted)
        return answer

    def start(self) -> None:
        """What the writer does at its start with files that an earlier one left."""
        self.books.transact(lambda tx: files.clean_leftovers(tx, self.installer))
        self.books.install(self.installer, self._redacted)

    def file(self, path: str, project: str = "alpha") -> Path:
        return self.root / "default" / project / path

    def save(self, path: str, text: str | bytes, project: str = "alpha") -> Path:
        """As a plain editor saves: in place."""
        file = self.file(path, project)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        return file

    # --- what the books say ---

    def pages(self) -> dict[str, str]:
        """Path → body of the live pages."""
        return {
            row["path"]: row["content"][row["body_start"] :]
            for row in self.books.query(
                "SELECT p.path, v.content, v.body_start FROM pages p JOIN page_versions v ON v.id = p.version_id"
                " WHERE p.tombstoned_at IS NULL"
            )
        }

    def page(self, path: str) -> Any:
        rows = self.books.query("SELECT * FROM pages WHERE path = ? ORDER BY number DESC", path)
        return rows[0] if rows else None

    def chain(self, path: str) -> list[tuple[str, str]]:
        """(cause, body) of every version of the page at a path, oldest first."""
        page = self.page(path)
        assert page is not None, path
        rows = self.books.query("SELECT * FROM page_versions WHERE page_id = ? ORDER BY seq", page["id"])
        return [(row["cause"], row["content"][row["body_start"] :]) for row in rows]

    def found(self, word: str) -> list[str]:
        return [
            row["path"]
            for row in self.books.query(
                "SELECT DISTINCT p.path FROM chunks_fts f JOIN page_chunks c ON c.number = f.rowid"
                " JOIN pages p ON p.number = c.page_number WHERE chunks_fts MATCH ?",
                word,
            )
        ]

    def close(self) -> None:
        self.books.close()

"""Looking at the wiki beside the books, and preparing what the writer will enter: reading, redacting, pairing renames.

Runs outside the lock that owns the connection, on a read-only connection of its own. It decides nothing
for good: the writer checks each finding again before it enters it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from memory_core import limits
from memory_core.commands.files import read_leniently
from memory_core.commands.outside import Finding, What
from memory_core.commands.past import History
from memory_core.domain.page import page_path
from memory_core.domain.project import Project
from memory_core.domain.wiki_file import NAME_TELLS, UNFIT, FileStat, text_of
from memory_core.store import projects, wiki_files, wiki_tasks
from memory_core.store.database import Database
from memory_core.store.pages import NewVersion
from memory_core.store.wiki_files import PageRow, SeenFile
from memory_core.store.wiki_tasks import WikiTask
from memory_core.wiki.compare import Comparison, Differences, ProjectBooks, books_of
from memory_core.wiki.folders import Folders, Home, reason_of
from memory_core.wiki.git_past import PastFiles
from memory_core.wiki.layout import META, project_directory, read_meta
from memory_core.wiki.walk import ReadFile, WikiTree


@dataclass(kw_only=True)
class ProjectState:
    """What the last look at one project's directory left to be said."""

    name: str
    files: int = 0
    pages: int = 0
    #: Changes that are not at rest yet.
    waiting: int = 0
    #: Pages whose file is promised and not there yet.
    unwritten: int = 0
    #: Pages without a file.
    missing: int = 0
    #: The directory of its pages, and why it is not to be had; empty when it is.
    folder: str = ""
    away: str = ""
    #: Pages whose files vanished in a way that a person must explain.
    held: int = 0
    #: Pages whose files hold something that is no text.
    broken: int = 0
    troubles: Mapping[str, str] = field(default_factory=dict[str, str])


class Finder:
    """Used by one thread. `redact` removes secrets from a text."""

    def __init__(
        self,
        tree: WikiTree,
        database: Database,
        comparison: Comparison,
        redact: Callable[[str], str],
        past: PastFiles | None = None,
    ) -> None:
        self._tree = tree
        self._database = database
        self._comparison = comparison
        self._redact = redact
        #: What the `_meta.md` of a directory said when it looked like that.
        self._metas: dict[str, tuple[FileStat, Project | None]] = {}
        #: Rendered files as they were when they last held what they should.
        self._rendered: dict[str, tuple[FileStat, bytes]] = {}
        #: Names that were looked through and hold no secret.
        self._clean: set[str] = set()
        #: Where earlier versions are looked for when a reindex is asked for them.
        self.past = past

    @property
    def reads(self) -> int:
        """Files that were read so far."""
        return self._tree.reads

    def projects(self) -> dict[str, Project]:
        """Directory → project of all that the database knows."""
        with self._database.snapshot() as reading:
            rows = projects.listed(reading, limit=limits.PROJECTS_LOOKED_AT_MAX)
        found = [Project.from_row(row) for row in rows]
        self._comparison.forget([project.id for project in found])
        return {project_directory(project): project for project in found}

    def open_task(self) -> WikiTask | None:
        with self._database.snapshot() as reading:
            return wiki_tasks.open_task(reading)

    def folders(self, known: Mapping[str, Project]) -> Folders:
        """What the directories on disk say, beside those of the projects that are known."""
        said = {directory: self._meta(directory)[1] for directory in self._tree.projects()}
        self._metas = {directory: meta for directory, meta in self._metas.items() if directory in said}
        telling = self._telling(known, said)
        found = Folders(
            known=known, said={folder: says for folder, says in said.items() if folder not in telling}
        ).sort()
        found.strangers |= {self.shown(folder): why for folder, why in telling.items()}
        return found

    def _telling(self, known: Mapping[str, Project], said: Mapping[str, Project | None]) -> dict[str, str]:
        """Directories that would bring a secret into the tables by a name, and why."""
        ids = {project.id for project in known.values()}
        telling: dict[str, str] = {}
        for folder, says in said.items():
            if folder in known:
                continue
            if self.tells(folder):
                telling[folder] = NAME_TELLS
            elif says is not None and says.id not in ids and self.tells(says.workspace, says.name):
                telling[folder] = f"there is a secret in the names that its {META} says"
        return telling

    def home(self, project: Project) -> Home:
        """Whether a project's directory is its own."""
        directory = project_directory(project)
        is_marked, said = self._meta(directory)
        if not is_marked:
            return Home.UNMARKED if self._tree.is_there(directory) else Home.ABSENT
        # One that cannot be read was not written by another project.
        return Home.OWN if said is None or said.id == project.id else Home.FOREIGN

    def _meta(self, directory: str) -> tuple[bool, Project | None]:
        """Whether a directory says whose it is, and the project that it names. One that looks as it did is not read again."""
        file = f"{directory}/{META}"
        stat = self._tree.look(file)
        if stat is None:
            return False, None
        before = self._metas.get(directory)
        if before is None or before[0] != stat:
            read = self._tree.read(file, limits.FRONT_MATTER_MAX_BYTES)
            if read is None:
                return True, None
            before = read.stat, read_meta(read.content.decode("utf-8", "replace"))
            self._metas[directory] = before
        return True, before[1]

    def find(self, project: Project, task: WikiTask | None, state: ProjectState) -> Generator[Finding]:
        """What is to be entered about one project; `state` is filled on the way."""
        with self._database.snapshot() as reading:
            books = books_of(reading, project)
        home = self.home(project)
        found = self._comparison.look(books, home)
        state.missing, state.folder = len(found.missing), books.directory
        is_expected = bool(books.seen) or home is Home.FOREIGN
        state.away = reason_of(home, books.directory) if is_expected else ""
        state.files, state.pages, state.waiting = found.files, found.pages, found.waiting
        found.troubles = {self.shown(file): self.shown(why) for file, why in found.troubles.items()}
        state.troubles, state.unwritten = found.troubles, found.unwritten
        return _Findings(self, books, found, task, state).all()

    def read(self, file: str) -> ReadFile | None:
        return self._tree.read(file, limits.OUTSIDE_PAGE_MAX_BYTES)

    def why_unreadable(self, file: str) -> str | None:
        return self._tree.why_unreadable(file)

    def hash_of(self, page: PageRow) -> bytes | None:
        with self._database.snapshot() as reading:
            return wiki_files.hash_of_version(reading, page.version_id)

    def redacted(self, text: str) -> str:
        return self._redact(text)

    def shown(self, name: str) -> str:
        """A file's or folder's name, or what is said of it, as others may read it: a secret in it is not told."""
        if name in self._clean:
            return name
        # Part by part too: a secret may begin or end where a name does.
        shown = self._redact("/".join(map(self._redact, name.split("/"))))
        if shown == name:
            self._keep_clean([name])
        return shown

    def look_through(self, names: Sequence[str]) -> None:
        """Remember that these hold no secret, if that is so: one look at many, as at the texts of one event, costs hardly
        more than at a single one. Where it finds something each is looked at by itself, when it is asked for."""
        text = "\n".join("\n".join((name, *name.split("/"))) for name in names)
        if self._redact(text) == text:
            self._keep_clean(names)

    def _keep_clean(self, names: Sequence[str]) -> None:
        if len(self._clean) >= limits.CLEAN_NAMES_MAX:
            self._clean.clear()
        self._clean.update(names)

    def tells(self, *names: str) -> bool:
        """Whether there is a secret in one of the names."""
        return any(self.shown(name) != name for name in names)

    def unrendered(self, books: ProjectBooks) -> list[str]:
        """Names of rendered files that are not as they were rendered. One that looks as it did is not read again."""
        found: list[str] = []
        for name, sha256 in books.rendered.items():
            file = f"{books.directory}/{name}"
            stat = self._tree.look(file)
            if file in books.promised or (stat is not None and self._rendered.get(file) == (stat, sha256)):
                continue
            read = self._tree.read(file, 0)
            if read is None or read.sha256 != sha256:
                found.append(name)
            else:
                self._rendered[file] = (read.stat, sha256)
        return found

    def is_gone_now(self, books: ProjectBooks, page: PageRow) -> bool:
        return self._comparison.is_rename(books, page)


class _Findings:
    """The findings of one look at one project."""

    def __init__(
        self,
        finder: Finder,
        books: ProjectBooks,
        found: Differences,
        task: WikiTask | None,
        state: ProjectState,
    ) -> None:
        self._finder = finder
        self._books = books
        self._found = found
        self._is_reindex = task is not None and task.kind == wiki_tasks.REINDEX
        self._history = (
            History(finder.past, books.directory, [file for file, _ in found.changed], finder.redacted)
            if self._is_reindex and finder.past and task and task.options.get("history")
            else None
        )
        self._heal = task.options if task is not None and task.kind == wiki_tasks.HEAL else None
        self._state = state
        #: Pages that turned up under another name.
        self._paired: set[bytes] = set()
        self._by_hash: dict[bytes, list[PageRow]] | None = None

    def all(self) -> Generator[Finding]:
        for number, (file, stat) in enumerate(self._found.changed):
            if number % limits.FINDINGS_MAX == 0:
                self._look_through_names(number)
            finding = self._file(file, stat)
            if finding is not None:
                yield finding
        yield from self._vanished()
        yield from self._broken()
        for file in self._found.forgotten:
            yield Finding(what=What.FORGOTTEN, project=self._books.project, file=file)
        # A directory that is away, or on its way back, is not begun with an index.
        if self._found.has_meta and not self._found.missing:
            for name in self._finder.unrendered(self._books):
                yield Finding(what=What.UNRENDERED, project=self._books.project, file=name)

    # --- files that are there ---

    def _look_through_names(self, first: int) -> None:
        some = self._found.changed[first : first + limits.FINDINGS_MAX]
        self._finder.look_through([self._books.inside(file) for file, _ in some])

    def _file(self, file: str, stat: FileStat) -> Finding | None:
        inside = self._books.inside(file)
        page = self._books.by_key.get(page_path(inside).key)
        # The name of a page has been through redaction before, or is memoryd's own.
        if page is None and self._finder.tells(inside):
            self._found.troubles[f"{self._books.directory}/{self._finder.shown(inside)}"] = NAME_TELLS
            return None
        read = self._finder.read(file)
        if read is None and (trouble := self._finder.why_unreadable(file)) is not None:
            self._found.troubles[file] = trouble
        if read is None or read.stat != stat:
            return None
        if page is not None:
            self._paired.add(page.id)
        text, problem = text_of(read.content)
        is_known = page is not None and page.path == inside and self._finder.hash_of(page) == read.sha256
        if text is None or is_known:
            before = self._books.seen.get(file)
            if text is not None and before is not None and before.sha256 == read.sha256:
                problem = before.problem
            return self._finding(What.SEEN, file, self._noted(file, read, problem))
        return self._written(file, read, text, page)

    def _noted(self, file: str, read: ReadFile, problem: str | None) -> SeenFile:
        self._found.troubles.pop(file, None)
        if problem is not None:
            self._found.troubles[file] = problem
        return SeenFile(read.stat, read.sha256, problem)

    def _written(self, file: str, read: ReadFile, text: str, page: PageRow | None) -> Finding:
        path = page_path(self._books.inside(file))
        cause = "reindex" if self._is_reindex else "external"
        version, problem = read_leniently(path, self._finder.redacted(text), read.sha256, cause=cause)
        moved = self._moved_page(read) if page is None else None
        past: tuple[NewVersion, ...] = ()
        if page is None and moved is None and self._history is not None:
            past, at = self._history.of(file, path, read.sha256)
            version, problem = replace(version, created_at=at), problem or self._history.trouble
        seen = self._noted(file, read, problem)
        if moved is not None:
            self._paired.add(moved.id)
            old_file = self._books.file_of(moved)
            return self._finding(What.MOVED, file, seen, moved, version=version, old_file=old_file)
        return self._finding(What.WRITTEN, file, seen, page, version=version, past=past)

    def _moved_page(self, read: ReadFile) -> PageRow | None:
        """The page that had these very bytes and whose file is not there: its file has moved. One by inode first."""
        if self._by_hash is None:
            self._by_hash = self._index()
        same = [page for page in self._by_hash.get(read.sha256, ()) if page.id not in self._paired]
        same.sort(key=lambda page: self._inode_of(page) != read.stat.inode)
        return next((page for page in same if self._finder.is_gone_now(self._books, page)), None)

    def _index(self) -> dict[bytes, list[PageRow]]:
        index: dict[bytes, list[PageRow]] = {}
        missing = {page.id for page in self._found.missing}
        for page in self._books.by_key.values():
            seen = self._books.seen.get(self._books.file_of(page))
            sha256 = seen.sha256 if seen else self._finder.hash_of(page) if page.id in missing else None
            if sha256 is not None:
                index.setdefault(sha256, []).append(page)
        return index

    def _inode_of(self, page: PageRow) -> int:
        seen = self._books.seen.get(self._books.file_of(page))
        return seen.stat.inode if seen else 0

    # --- files that are not there, or are not what they should be ---

    def _vanished(self) -> Generator[Finding]:
        for page in self._found.obstructed:
            # The promise waits, named, until its place is free: the page is written again and never taken for deleted.
            if page.id not in self._paired:
                yield self._finding(What.REWRITTEN, self._books.file_of(page), None, page)
        gone = [page for page in self._found.gone if page.id not in self._paired]
        if self._heal is not None and not self._heal.get("accept_deletions"):
            for page in gone:
                yield self._finding(What.REWRITTEN, self._books.file_of(page), None, page)
            return
        missing = sum(page.id not in self._paired for page in self._found.missing)
        if gone and self._found.is_held(missing) and not (self._heal or {}).get("accept_deletions"):
            self._state.held = missing
            return
        for page in gone:
            yield self._finding(What.GONE, self._books.file_of(page), None, page)

    def _broken(self) -> Generator[Finding]:
        for page in self._books.by_key.values():
            file = self._books.file_of(page)
            seen = self._books.seen.get(file)
            # Of a file that is not there nothing is known any more.
            if seen is None or self._found.troubles.get(file) not in UNFIT or page.id in self._paired:
                continue
            self._state.broken += 1
            if self._heal is not None and self._heal.get("broken") and file not in self._books.promised:
                yield self._finding(What.REWRITTEN, file, seen, page)

    def _finding(
        self, what: What, file: str, seen: SeenFile | None, page: PageRow | None = None, **more: Any
    ) -> Finding:
        """`more` as `Finding` takes it."""
        return Finding(
            what=what,
            project=self._books.project,
            file=file,
            seen=seen,
            page_id=page.id if page else None,
            base_version=page.version_id if page else None,
            **more,
        )

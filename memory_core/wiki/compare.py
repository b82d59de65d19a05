"""What changed between the books and the disk, found without reading a file that looks as it did.

A change counts once it is at rest: a file that was seen the same twice, a page whose file stayed away. Editors
write in steps, delete before they create, and move folders while they are being looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from memory_core import limits
from memory_core.clock import Clock
from memory_core.domain.page import name_key
from memory_core.domain.project import Project
from memory_core.domain.wiki_file import FileStat, trouble_with_name
from memory_core.store import rendered, wiki_files
from memory_core.store.transaction import Reading
from memory_core.store.wiki_files import PageRow, SeenFile
from memory_core.wiki.folders import Home
from memory_core.wiki.layout import project_directory
from memory_core.wiki.walk import Tree, WikiTree

#: A folder that is moved during a look can be missed at its new place once.
_GONE_LOOKS = 2


@dataclass(frozen=True, kw_only=True)
class ProjectBooks:
    """What the database knows of one project's files."""

    project: Project
    #: `<workspace>/<project>`, relative to the wiki root.
    directory: str
    by_key: Mapping[str, PageRow]
    seen: Mapping[str, SeenFile]
    promised: frozenset[str]
    #: Name → SHA-256 of what is rendered and has nothing new to tell.
    rendered: Mapping[str, bytes]

    def is_page(self, inside: str) -> bool:
        """Whether a page has that very path."""
        page = self.by_key.get(name_key(inside))
        return page is not None and page.path == inside

    def file_of(self, page: PageRow) -> str:
        return f"{self.directory}/{page.path}"

    def inside(self, file: str) -> str:
        return file[len(self.directory) + 1 :]


def books_of(reading: Reading, project: Project) -> ProjectBooks:
    return ProjectBooks(
        project=project,
        directory=project_directory(project),
        by_key={page.key: page for page in wiki_files.page_rows(reading, project.id)},
        seen=wiki_files.seen_files(reading, project.id),
        promised=frozenset(wiki_files.promised_files(reading, project.id)),
        rendered=rendered.at_rest(reading, project.id),
    )


@dataclass(kw_only=True)
class Differences:
    """What one look at a project found. Files are relative to the wiki root."""

    files: int
    pages: int
    #: Whether the directory is this project's by its `_meta.md`.
    has_meta: bool
    #: At rest and not as they were last read.
    changed: list[tuple[str, FileStat]] = field(default_factory=list[tuple[str, FileStat]])
    #: Pages without a file for long enough.
    gone: list[PageRow] = field(default_factory=list[PageRow])
    #: Pages without a file, those of `gone` among them.
    missing: list[PageRow] = field(default_factory=list[PageRow])
    #: Pages in whose file's place lies something else for long enough: they are not deleted, and their files are promised again.
    obstructed: list[PageRow] = field(default_factory=list[PageRow])
    #: Rows of files that are not there any more and belong to no page.
    forgotten: list[str] = field(default_factory=list[str])
    #: What cannot be taken in, and why.
    troubles: dict[str, str] = field(default_factory=dict[str, str])
    #: Changes that are not at rest yet.
    waiting: int = 0
    #: Pages whose file is promised and not there yet.
    unwritten: int = 0

    def is_held(self, missing: int) -> bool:
        """Whether so much vanished that a person must say what it means: a directory that is not mounted looks like this.

        `missing` are pages without a file that did not turn up under another name, however short a time they are away: a
        large directory takes a while to vanish.
        """
        many = missing > limits.VANISHED_PAGES_MAX and 2 * missing > self.pages
        nearly_all = missing >= limits.VANISHED_WHOLE_MIN and 4 * missing > 3 * self.pages
        return missing > 0 and (many or nearly_all or not self.has_meta)


class Comparison:
    """Compares again and again, and remembers between the looks what was not yet at rest."""

    def __init__(self, tree: WikiTree, clock: Clock) -> None:
        self._tree = tree
        self._clock = clock
        #: Of each project: how a changed file looked, since when, and since when it has been changing.
        self._restless: dict[bytes, dict[str, tuple[FileStat, float, float]]] = {}
        #: Of each project: page id to since when its file is missing, and in how many looks.
        self._missing: dict[bytes, dict[bytes, tuple[float, int]]] = {}

    def look(self, books: ProjectBooks, home: Home) -> Differences:
        """One look at a project's directory, which `home` says the project's of. Opens no file."""
        tree = self._tree.tree(books.directory, books.is_page) if home is not Home.FOREIGN else Tree()
        found = Differences(files=len(tree.files), pages=len(books.by_key), has_meta=home is Home.OWN)
        self._look_at_files(books, tree, found)
        self._look_for_missing(books, tree, found)
        passed_over = tree.strange | dict.fromkeys(tree.links, "a symbolic link; it is not followed")
        found.troubles = passed_over | found.troubles
        found.troubles |= dict.fromkeys(tree.closed, "it cannot be looked into: permission denied")
        return found

    def _look_at_files(self, books: ProjectBooks, tree: Tree, found: Differences) -> None:
        now = self._clock.monotonic()
        before, after = self._restless.get(books.project.id, {}), {}
        taken: dict[str, str] = {}
        for file, stat in tree.files.items():
            seen = books.seen.get(file)
            if seen is not None and seen.problem:
                found.troubles[file] = seen.problem
            if (seen is not None and seen.stat == stat) or file in books.promised:
                continue
            inside = books.inside(file)
            trouble = trouble_with_name(inside, is_page=books.is_page(inside))
            trouble = trouble or self._twin(books, tree, inside, taken)
            if trouble:
                found.troubles[file] = trouble
                continue
            looked, since, restless_since = before.get(file, (None, now, now))
            if looked != stat:
                since = now
            quiet = limits.FILE_QUIET_SECONDS if stat.size else limits.FILE_GONE_SECONDS
            if now - since >= quiet or now - restless_since >= limits.FILE_RESTLESS_SECONDS:
                found.changed.append((file, stat))
            else:
                found.waiting += 1
            after[file] = (stat, since, restless_since)
        self._restless[books.project.id] = after

    def _twin(self, books: ProjectBooks, tree: Tree, inside: str, taken: dict[str, str]) -> str | None:
        """Two files whose names differ only in case are one page: the one that the page is spelled like."""
        key = name_key(inside)
        page = books.by_key.get(key)
        first = page.path if page and books.file_of(page) in tree.files else taken.setdefault(key, inside)
        return None if first == inside else f"its name differs from {first} only in case; rename one of them"

    def _look_for_missing(self, books: ProjectBooks, tree: Tree, found: Differences) -> None:
        now = self._clock.monotonic()
        before, after = self._missing.get(books.project.id, {}), {}
        expected: set[str] = set()
        for page in books.by_key.values():
            file = books.file_of(page)
            expected.add(file)
            if file in tree.files or tree.is_closed(file):
                continue
            # Where the folder as a whole is not the project's, nothing is known of its files.
            why = self._tree.occupied(file) if found.has_meta or file in books.promised else None
            if why is not None:
                found.troubles[file] = why
            if file in books.promised:
                found.unwritten += 1
                continue
            if why is None:
                found.missing.append(page)
            since, looks = before.get(page.id, (now, 0))
            after[page.id] = (since, looks + 1)
            if now - since >= limits.FILE_GONE_SECONDS and looks >= _GONE_LOOKS:
                (found.gone if why is None else found.obstructed).append(page)
            else:
                found.waiting += 1
        self._missing[books.project.id] = after
        found.forgotten = [
            file
            for file in books.seen
            if not (file in tree.files or file in expected or tree.is_closed(file))
        ]

    def is_rename(self, books: ProjectBooks, page: PageRow) -> bool:
        """Whether the file of a page is gone at this moment; a folder may have moved while it was looked at."""
        file = books.file_of(page)
        return file not in books.promised and self._tree.look(file) is None

    def forget(self, project_ids: Iterable[bytes]) -> None:
        """Drop what is remembered of projects that are not there any more."""
        kept = set(project_ids)
        for memory in (self._restless, self._missing):
            for project_id in [known for known in memory if known not in kept]:
                del memory[project_id]

"""What a batch of changed pages is in the history: the bytes of its files, and its commit message.

The bytes come from the versions in the database. Only where a file came from outside, and its version keeps the text
without the secrets that were in it, the file itself is looked at; one with a secret is held back: a history cannot be
cleaned of it any more.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from memory_core import limits
from memory_core.domain.page import page_path
from memory_core.domain.project import Project
from memory_core.domain.wiki_file import is_candidate
from memory_core.errors import Invalid
from memory_core.ids import id_text
from memory_core.store import projects, wiki_files
from memory_core.store.database import Database
from memory_core.store.git_batches import BASELINE, CHECKPOINT, Batch, Change, live_pages
from memory_core.store.pages import version_row
from memory_core.wiki.exchange import Blocked, directory, read_plain
from memory_core.wiki.git_repository import FileChange, message_of
from memory_core.wiki.layout import META, file_of, parts_of, project_directory
from memory_core.wiki.walk import WikiTree


class BatchFiles:
    """Finds the bytes of changes. `held_back` is told of each file that is not committed because of a secret in it;
    `tracked` gives the files that the history has below a folder."""

    def __init__(
        self,
        database: Database,
        root: Path,
        held_back: Callable[[str], None],
        tracked: Callable[[str], list[str]] = lambda _folder: [],
    ) -> None:
        self._database = database
        self._root = root
        self._tree = WikiTree(root)
        self._held_back = held_back
        self._tracked = tracked

    def of(self, changes: Sequence[Change]) -> Generator[FileChange]:
        """The files of these changes, and memoryd's own files of their projects."""
        yield from self._left({folder for change in changes for folder in change.earlier_folders})
        yield from self._own({project_directory(_project(change)) for change in changes})
        for change in changes:
            yield from self._one(change)

    def _left(self, folders: Iterable[str]) -> Generator[FileChange]:
        """What the history still has of pages in folders that were renamed since."""
        for folder in sorted(folders):
            tracked = self._tracked(folder)
            if not tracked:
                continue
            lives_there = self._files_in(folder)
            for file in tracked:
                inside = file[len(folder) + 1 :]
                if file not in lives_there and (is_candidate(inside) or inside == META):
                    yield FileChange(file=file, content=None)

    def _files_in(self, folder: str) -> set[str]:
        """The files of the project that lies in that folder now, if one does."""
        with self._database.snapshot() as reading:
            rows = projects.listed(reading, limit=limits.PROJECTS_LOOKED_AT_MAX)
            for project in map(Project.from_row, rows):
                if project_directory(project) == folder:
                    pages = wiki_files.page_rows(reading, project.id)
                    return {f"{folder}/{META}", *(f"{folder}/{page.path}" for page in pages)}
        return set()

    def of_all_pages(self) -> Generator[FileChange]:
        """Every page as it is now."""
        seen: set[str] = set()
        after = 0
        while True:
            with self._database.snapshot() as reading:
                changes, after = live_pages(reading, after=after, count=limits.GIT_BASELINE_ROWS)
            if not changes:
                return
            folders = {project_directory(_project(change)) for change in changes} - seen
            seen |= folders
            yield from self._own(folders)
            for change in changes:
                yield from self._one(change)

    def _one(self, change: Change) -> Generator[FileChange]:
        file = file_of_change(change)
        if change.version_id is None:
            yield FileChange(file=file, content=None)
            return
        with self._database.snapshot() as reading:
            version = version_row(reading, change.version_id)
        if version is None or self._tree.occupied(file):
            # A path that is no file in the work tree would be in the way of people's own commits. The change is noted again
            # when its file is in place.
            return
        content = self._content(file, version["content"], version["sha256"])
        if content is not None:
            yield FileChange(file=file, content=content)

    def _content(self, file: str, text: str, sha256: bytes) -> bytes | None:
        content = text.encode()
        if _sha256(content) == sha256:
            return content
        found = self._read(file, limits.EXTERNAL_FILE_MAX_BYTES)
        if found is None or found[0] != sha256:
            return None  # it changed meanwhile: what it is now comes with a later version
        if found[1].decode("utf-8", "replace") == text:
            return found[1]
        self._held_back(file)
        return None

    def _own(self, folders: Iterable[str]) -> Generator[FileChange]:
        """What says which project a folder is. Rendered files are in no history: they would be in the way of a pull."""
        for folder in sorted(folders):
            found = self._read(f"{folder}/{META}", limits.EXTERNAL_FILE_MAX_BYTES)
            if found is not None and _sha256(found[1]) == found[0]:
                yield FileChange(file=f"{folder}/{META}", content=found[1])

    def _read(self, file: str, max_bytes: int) -> tuple[bytes, bytes] | None:
        parts = parts_of(file)
        with (
            suppress(OSError, Blocked, Invalid),
            directory(self._root, parts[:-1], create=False) as descriptor,
        ):
            return read_plain(parts[-1], descriptor, max_bytes)
        return None


def file_of_change(change: Change) -> str:
    """Relative to the wiki root."""
    return file_of(_project(change), page_path(change.path))


def batch_message(batches: Sequence[Batch], changes: Sequence[Change], epoch: int) -> str:
    """Subject, the files (the first of them), and the trailers of every batch that the commit stands for."""
    said = [batch.message for batch in batches if batch.message]
    subject = said[0].splitlines()[0] if said else _subject(batches, changes)
    lines = [line for text in said for line in text.splitlines()][1:]
    lines += [f"{_cause(change)} {file_of_change(change)}" for change in changes[: limits.GIT_MESSAGE_FILES]]
    if len(changes) > limits.GIT_MESSAGE_FILES:
        lines.append(f"and {len(changes) - limits.GIT_MESSAGE_FILES} more")
    return message_of(subject, lines, batch_ids=[id_text(batch.id) for batch in batches], epoch=epoch)


def _subject(batches: Sequence[Batch], changes: Sequence[Change]) -> str:
    if batches[-1].kind == BASELINE:
        return "all pages as they are"
    if not changes:
        return "checkpoint" if batches[-1].kind == CHECKPOINT else "nothing changed"
    if len(changes) == 1:
        return f"{_cause(changes[0])}: {file_of_change(changes[0])}"
    counts = Counter(_cause(change) for change in changes)
    return f"{len(changes)} pages: " + ", ".join(
        f"{count} {cause}" for cause, count in sorted(counts.items())
    )


def _cause(change: Change) -> str:
    return change.cause or ("delete" if change.version_id is None else "write")


def _project(change: Change) -> Project:
    return Project(
        id=change.project_id,
        number=0,
        workspace=change.workspace,
        name=change.project,
        folder=change.folder,
        earlier_folders=change.earlier_folders,
    )


def _sha256(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()

"""What earlier commits hold of the pages' files: read for a rebuild of the tables. Changes nothing."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable
from dataclasses import dataclass

from memory_core import limits
from memory_core.clock import MICROSECONDS
from memory_core.errors import NotFound
from memory_core.wiki.git import Git, GitFailed

#: Begins the line of a commit; no object id or mode does.
_COMMIT = "\x01"


@dataclass(frozen=True, slots=True)
class PastState:
    """A file as a commit left it. `at` is the commit's time, UTC microseconds."""

    at: int
    object_id: str


@dataclass(frozen=True, slots=True)
class _Entry:
    status: str
    old_id: str
    new_id: str
    file: str


class PastFiles:
    """The history of one repository along the first parents of HEAD: a merge counts as what it changed there."""

    def __init__(self, git: Git) -> None:
        self._git = git

    def of(self, folder: str, files: Collection[str]) -> dict[str, list[PastState]]:
        """The states of these files below `folder`, oldest first, under earlier names too: a file that came in the same
        commit in which another one of the same bytes went was renamed.

        At most the newest `HISTORY_VERSIONS_MAX` of a file. Raises `NotFound` where there is no history.
        """
        if not self._git.is_there():
            raise NotFound("the wiki has no history in git")
        found: dict[str, list[PastState]] = {}
        #: The name that a file has at the commit that is looked at → its name now.
        names = {file: file for file in files}
        for at, entries in self._commits(folder):
            went = {entry.old_id: entry.file for entry in entries if entry.status == "D"}
            for entry in entries:
                now = names.get(entry.file)
                if now is None or entry.status == "D":
                    continue
                states = found.setdefault(now, [])
                if len(states) < limits.HISTORY_VERSIONS_MAX:
                    states.append(PastState(at, entry.new_id))
                before = went.get(entry.new_id)
                if entry.status == "A" and before is not None and before not in names:
                    names[before] = names.pop(entry.file)
        return {file: states[::-1] for file, states in found.items()}

    def contents(self, states: Iterable[PastState], max_bytes: int) -> dict[str, bytes]:
        """Object id → bytes of those that are no longer than `max_bytes`."""
        wanted = list(dict.fromkeys(state.object_id for state in states))
        told = self._git.run(
            "cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize)", stdin=_lines(wanted)
        )
        fitting: list[str] = []
        for line in told.decode("ascii", "replace").splitlines():
            object_id, kind, *size = line.split(" ")
            if kind == "blob" and int(size[0]) <= max_bytes:
                fitting.append(object_id)
        raw = self._git.run("cat-file", "--batch", stdin=_lines(fitting))
        found: dict[str, bytes] = {}
        at = 0
        for object_id in fitting:
            end = raw.index(b"\n", at)
            size_bytes = int(raw[at:end].rsplit(b" ", 1)[1])
            found[object_id] = raw[end + 1 : end + 1 + size_bytes]
            at = end + 1 + size_bytes + 1
        return found

    def _commits(self, folder: str) -> Generator[tuple[int, list[_Entry]]]:
        """Time and changes of each commit, newest first."""
        try:
            head = self._git.run("rev-parse", "--verify", "--quiet", "HEAD^{commit}").decode().strip()
        except GitFailed as error:
            raise NotFound("the wiki's history in git has no commit") from error
        skipped = 0
        while True:
            raw = self._git.run(
                "log",
                "-z",
                "--raw",
                "-m",
                "--first-parent",
                "--no-renames",
                "--no-abbrev",
                f"--skip={skipped}",
                f"--max-count={limits.HISTORY_SLICE_COMMITS}",
                f"--format=tformat:{_COMMIT}%ct",
                head,
                "--",
                folder,
            )
            commits = list(_parsed(raw.decode("utf-8", "surrogateescape").split("\0")))
            yield from commits
            if len(commits) < limits.HISTORY_SLICE_COMMITS:
                return
            skipped += len(commits)


def _parsed(parts: list[str]) -> Generator[tuple[int, list[_Entry]]]:
    at: int | None = None
    entries: list[_Entry] = []
    tokens = iter(parts)
    for token in tokens:
        said = token.lstrip("\n")
        if said.startswith(_COMMIT):
            if at is not None:
                yield at, entries
            at, entries = int(said[1:]) * MICROSECONDS, []
        elif said.startswith(":"):
            _, mode, old_id, new_id, status = said.split(" ")
            file = next(tokens)
            # A link or a submodule of somebody's is no page.
            if status[0] == "D" or mode.startswith("100"):
                entries.append(_Entry(status[0], old_id, new_id, file))
    if at is not None:
        yield at, entries


def _lines(words: Iterable[str]) -> Generator[bytes]:
    for word in words:
        yield f"{word}\n".encode()

"""What earlier commits hold of the pages' files: read for a rebuild of the tables. Changes nothing."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable
from dataclasses import dataclass
from itertools import takewhile

from memory_core import limits
from memory_core.clock import MICROSECONDS
from memory_core.errors import NotFound
from memory_core.wiki.git import Git, GitFailed

#: Begins the line of a commit; no object id or mode does.
_COMMIT = "\x01"
#: `<workspace>/<project>`.
_PROJECT_DEPTH = 2


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


@dataclass(frozen=True, slots=True)
class _Commit:
    id: str
    at: int
    entries: list[_Entry]


#: Object id → the files of these bytes that a commit took away.
_Went = dict[str, list[str]]


class PastFiles:
    """The history of one repository along the first parents of HEAD: a merge counts as what it changed there."""

    def __init__(self, git: Git) -> None:
        self._git = git
        #: What each commit before some HEAD took away, anywhere in the repository.
        self._gone: tuple[str, dict[str, _Went]] = ("", {})

    def of(self, folder: str, files: Collection[str]) -> dict[str, list[PastState]]:
        """The states of these files below `folder`, oldest first, under earlier names too: a file that came in the same
        commit in which another one of the same bytes went was renamed, alone or with its whole folder.

        At most the newest `HISTORY_VERSIONS_MAX` of a file. Raises `NotFound` where there is no history.
        """
        if not self._git.is_there():
            raise NotFound("the wiki has no history in git")
        head = self._head()
        gone = self._all_gone(head)
        found: dict[str, list[PastState]] = {}
        #: The name that a file has at the commit that is looked at → its name now.
        names = {file: file for file in files}
        folders, begin = {folder}, head
        while begin:
            begin, more = self._back(begin, sorted(folders), names, gone, found)
            folders |= more
        return {file: states[::-1] for file, states in found.items()}

    def _back(
        self,
        begin: str,
        folders: list[str],
        names: dict[str, str],
        gone: dict[str, _Went],
        found: dict[str, list[PastState]],
    ) -> tuple[str, set[str]]:
        """Go back from `begin` until a file came from a folder that is none of these; where to go on then, and which they are."""
        for commit in self._commits(begin, folders):
            went = gone.get(commit.id, {})
            renamed: dict[str, str] = {}
            for entry in commit.entries:
                now = names.get(entry.file)
                if now is None or entry.status == "D":
                    continue
                states = found.setdefault(now, [])
                if len(states) < limits.HISTORY_VERSIONS_MAX:
                    states.append(PastState(commit.at, entry.new_id))
                left = [
                    file for file in went.get(entry.new_id, []) if file not in names and file not in renamed
                ]
                if entry.status == "A" and left:
                    renamed[_most_alike(left, entry.file)] = entry.file
            for before, after in renamed.items():
                names[before] = names.pop(after)
            further = {_folder_of(before) for before in renamed} - {_folder_of(each) for each in folders}
            if further:
                return f"{commit.id}^", further
        return "", set()

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

    def _head(self) -> str:
        try:
            return self._git.run("rev-parse", "--verify", "--quiet", "HEAD^{commit}").decode().strip()
        except GitFailed as error:
            raise NotFound("the wiki's history in git has no commit") from error

    def _all_gone(self, head: str) -> dict[str, _Went]:
        """By commit, what it took away. Asked of the whole repository, once for all projects: a renamed folder comes from anywhere."""
        if self._gone[0] != head:
            gone: dict[str, _Went] = {}
            for commit in self._commits(head, [], "--diff-filter=D"):
                went = gone.setdefault(commit.id, {})
                for entry in commit.entries:
                    went.setdefault(entry.old_id, []).append(entry.file)
            self._gone = head, gone
        return self._gone[1]

    def _commits(self, begin: str, folders: list[str], *options: str) -> Generator[_Commit]:
        """Commits that changed something below the folders (none: anywhere), newest first."""
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
                *options,
                f"--skip={skipped}",
                f"--max-count={limits.HISTORY_SLICE_COMMITS}",
                f"--format=tformat:{_COMMIT}%H %ct",
                begin,
                "--",
                *folders,
            )
            commits = list(_parsed(raw.decode("utf-8", "surrogateescape").split("\0")))
            yield from commits
            if len(commits) < limits.HISTORY_SLICE_COMMITS:
                return
            skipped += len(commits)


def _most_alike(files: list[str], file: str) -> str:
    """Of several files of the same bytes the one whose path ends most like that one."""

    def shared(other: str) -> int:
        pairs = zip(reversed(other.split("/")), reversed(file.split("/")), strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))

    return max(files, key=shared)


def _folder_of(file: str) -> str:
    """The project's directory that a file lies in."""
    return "/".join(file.split("/")[:_PROJECT_DEPTH])


def _parsed(parts: list[str]) -> Generator[_Commit]:
    at: int | None = None
    commit_id = ""
    entries: list[_Entry] = []
    tokens = iter(parts)
    for token in tokens:
        said = token.lstrip("\n")
        if said.startswith(_COMMIT):
            if at is not None:
                yield _Commit(commit_id, at, entries)
            commit_id, _, seconds = said[1:].partition(" ")
            at, entries = int(seconds) * MICROSECONDS, []
        elif said.startswith(":"):
            _, mode, old_id, new_id, status = said.split(" ")
            file = next(tokens)
            # A link or a submodule of somebody's is no page.
            if status[0] == "D" or mode.startswith("100"):
                entries.append(_Entry(status[0], old_id, new_id, file))
    if at is not None:
        yield _Commit(commit_id, at, entries)


def _lines(words: Iterable[str]) -> Generator[bytes]:
    for word in words:
        yield f"{word}\n".encode()

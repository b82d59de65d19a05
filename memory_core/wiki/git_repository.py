"""The wiki's history: commits made of known bytes, and looking at what was committed.

A commit is built from the bytes it is given, never from the work tree, on top of whatever HEAD is. Other files
that HEAD has, and what a person staged, stay as they are.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Generator, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from memory_core import limits
from memory_core.clock import MICROSECONDS, Clock
from memory_core.durable import sync_directory
from memory_core.errors import Invalid, NotFound
from memory_core.wiki.git import Git, GitBusy, GitFailed, revision
from memory_core.wiki.git_lock import Locks
from memory_core.wiki.layout import RENDERED, TEMPORARY

AUTHOR = "memoryd <memoryd@localhost>"
BATCH_TRAILER = "Batch-Id"
EPOCH_TRAILER = "Epoch"
#: Our own name for the newest commit of ours, whatever branch a person is on.
_REF = "refs/memoryd/batch"
_KEPT = "refs/memoryd/kept"
#: A commit that nothing else names yet.
_MAKING = "refs/memoryd/making"
_BRANCH = "main"
_FIELDS = ("%H", "%ct", "%an", "%s", f"%(trailers:key={BATCH_TRAILER},valueonly,separator=%x20)")
_NOT_KEPT = (*(f"{name}*" for name in TEMPORARY), *(f"/*/*/{name}" for name in RENDERED))
#: A person is in the middle of something of several steps; a commit of ours would become part of it.
_UNDER_WAY = (
    "MERGE_HEAD",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "rebase-merge",
    "rebase-apply",
    "sequencer",
)


@dataclass(frozen=True, kw_only=True)
class FileChange:
    """One file (relative to the wiki root) and its bytes; None: it goes away."""

    file: str
    content: bytes | None


@dataclass(frozen=True, kw_only=True)
class Committed:
    """`commit_id` is the commit that holds the batch; `files` is how many files it changed (0: HEAD held all of it)."""

    commit_id: str
    files: int


@dataclass(frozen=True, kw_only=True)
class LogEntry:
    """One commit. `batch_ids` are those of memoryd's batches in it; none for a person's own. `at` is in seconds, UTC."""

    commit_id: str
    at: int
    author: str
    subject: str
    batch_ids: tuple[str, ...]


class Repository:
    """The repository below a wiki root. One thread commits; any may look."""

    def __init__(self, git: Git, clock: Clock) -> None:
        self.git = git
        self._clock = clock
        self.locks = Locks(git.directory, clock)

    # --- making ---

    def create(self) -> None:
        """Make the repository; what is there already stays."""
        self.git.run(
            "-c", f"init.defaultBranch={_BRANCH}", "init", "--quiet", "--template=", "--object-format=sha1"
        )
        self.leave_out()

    def leave_out(self) -> None:
        """Tell git what nobody commits, unless it was told before: a kill may come between `init` and this."""
        exclude = self.git.directory / "info" / "exclude"
        if exclude.exists():
            return
        exclude.parent.mkdir(exist_ok=True)
        aside = exclude.with_name("memoryd-exclude")
        # What is being put in place is nobody's to commit; what is rendered would be in the way of a pull.
        aside.write_text("".join(f"{line}\n" for line in _NOT_KEPT), encoding="ascii")
        aside.replace(exclude)

    def commit(self, changes: Iterable[FileChange], message: str) -> Committed:
        """Commit these bytes on top of HEAD; the commit that HEAD is at when that changes nothing.

        Raises `GitBusy` while somebody else is at work in the repository.
        """
        began_ns = self._clock.now_us() * 1000
        with self.locks.index():
            if step := next((name for name in _UNDER_WAY if (self.git.directory / name).exists()), None):
                raise GitBusy(f"somebody is in the middle of a merge or rebase ({step})")
            head = self.head()
            made = self._import(changes, message, head)
            changed = self._differences(head, made)
            if not changed and head is not None:
                self.git.run("update-ref", "-d", _MAKING)
                return Committed(commit_id=head, files=0)
            # The index first: killed between the two, the next try makes the same commit.
            self._update_index(head, changed)
            self._point(head, made, self._resolved(_REF))
        self._sync(began_ns)
        return Committed(commit_id=made, files=len(changed))

    def head(self) -> str | None:
        """The commit that HEAD is at; None before the first one. `GitFailed` when it names one that is not there."""
        try:
            return self._at_head()
        except GitBusy:
            raise
        except GitFailed:
            if self._is_unborn():
                return None
        # Born between the two looks, by the first commit of another process; else it fails once more.
        return self._at_head()

    def _at_head(self) -> str:
        return self.git.run("rev-parse", "--verify", "--quiet", "HEAD^{commit}").decode().strip()

    def is_begun(self) -> bool:
        """Whether a commit of ours was ever made here: not so in a repository that somebody else put in place of it."""
        return self.is_named() or self._resolved(_REF) is not None

    def is_named(self) -> bool:
        """The same, told by the files of the refs alone; false too where they cannot tell it."""
        directory = self.git.directory
        if (directory / _REF).exists():
            return True
        with suppress(OSError):
            return f" {_REF}\n" in (directory / "packed-refs").read_text(errors="replace")
        return False

    def _is_unborn(self) -> bool:
        try:
            name = self.git.run("symbolic-ref", "--quiet", "HEAD").decode("utf-8", "replace").strip()
        except GitFailed:
            return False
        packed = self.git.directory / "packed-refs"
        is_packed = packed.exists() and f" {name}\n" in packed.read_text(errors="replace")
        return not is_packed and not (self.git.directory / name).exists()

    def _import(self, changes: Iterable[FileChange], message: str, head: str | None) -> str:
        at = self._clock.now_us() // MICROSECONDS
        self.git.run(
            "fast-import",
            "--quiet",
            "--force",
            "--done",
            "--date-format=raw",
            stdin=_stream(changes, message, head, at),
            seconds=limits.GIT_REPAIR_SECONDS,
        )
        return self.git.run("rev-parse", "--verify", f"{_MAKING}^{{commit}}").decode().strip()

    def _differences(self, head: str | None, made: str) -> list[tuple[str, str, bytes]]:
        """Mode, object id and path of each file that differs; mode `0` where it is gone."""
        told = ("--root", made) if head is None else (head, made)
        raw = self.git.run("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-commit-id", *told)
        parts = raw.split(b"\0")
        found: list[tuple[str, str, bytes]] = []
        for about, path in zip(parts[::2], parts[1::2], strict=False):
            _, mode, _, object_id, _ = about.decode().split(" ")
            found.append(("0" if mode == "000000" else mode, object_id, path))
        return found

    def _update_index(self, head: str | None, changed: list[tuple[str, str, bytes]]) -> None:
        """Bring the person's index along for our files, in a copy that replaces it: its lock is ours."""
        index, aside = self.git.directory / "index", self.git.directory / "memoryd-index"
        aside.unlink(missing_ok=True)
        environ = {"GIT_INDEX_FILE": str(aside)}
        try:
            aside.write_bytes(index.read_bytes())
        except FileNotFoundError:
            if head is not None:
                self.git.run("read-tree", head, environ=environ)
        lines = (
            mode.encode() + b" " + object_id.encode() + b"\t" + path + b"\0"
            for mode, object_id, path in changed
        )
        self.git.run("update-index", "--replace", "-z", "--index-info", stdin=lines, environ=environ)
        aside.replace(index)

    def _point(self, head: str | None, made: str, last: str | None) -> None:
        """HEAD and our own name come to the new commit. Where a person moved HEAD to a line without our last
        commit, that one keeps a name, so that nothing of the history is ever dropped."""
        lines = [f"update HEAD {made} {head}" if head else f"create HEAD {made}", f"update {_REF} {made}"]
        lines.append(f"delete {_MAKING}")
        if last is not None and last != head and not self._is_ancestor(last, made):
            lines.append(f"update {_KEPT}/{last} {last}")
        self.git.run(
            "update-ref",
            "-m",
            "memoryd",
            "--create-reflog",
            "--stdin",
            stdin=(f"{line}\n".encode() for line in lines),
        )

    def _is_ancestor(self, older: str, newer: str) -> bool:
        try:
            self.git.run("merge-base", "--is-ancestor", older, newer)
        except GitBusy:
            raise
        except GitFailed:
            return False
        return True

    def _resolved(self, name: str) -> str | None:
        try:
            return self.git.run("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}").decode().strip()
        except GitBusy:
            raise
        except GitFailed:
            return None

    def _sync(self, began_ns: int) -> None:
        """Sync the directories in which git made names: it syncs files, but not the entries that lead to them."""
        directory = self.git.directory
        wanted = [directory, directory / "objects", directory / "objects" / "pack"]
        wanted += [place for place in (directory / "refs").rglob("*") if place.is_dir()]
        wanted += [directory / "refs", directory / "logs", directory / "logs" / "refs" / "heads"]
        # A second of grace for file systems with coarse times.
        fresh = began_ns - 1_000_000_000
        with os.scandir(directory / "objects") as entries:
            wanted += [
                Path(entry.path) for entry in entries if entry.is_dir() and entry.stat().st_mtime_ns >= fresh
            ]
        for place in dict.fromkeys(wanted):
            with suppress(FileNotFoundError):
                sync_directory(place)

    # --- looking ---

    def log(self, count: int, *files: str) -> list[LogEntry]:
        """The newest commits, of these files or folders where some are given. `NotFound` while there is no repository."""
        if not self.git.is_there():
            raise NotFound("the wiki has no history yet")
        if self.head() is None:
            return []
        wanted = ("--", *files) if files else ()
        shape = "%x00".join(_FIELDS)
        raw = self.git.run(
            "log", "-z", f"--max-count={count}", f"--format=tformat:{shape}", "HEAD", *wanted
        ).decode("utf-8", "replace")
        parts = raw.split("\0")
        size = len(_FIELDS)
        return [_entry(parts[at : at + size]) for at in range(0, len(parts) - size + 1, size)]

    def find_batch(self, batch_id: str) -> str | None:
        """The commit among the newest ones that names the batch; None when there is none."""
        entries = self.log(limits.GIT_LOOK_BACK_COMMITS)
        return next((entry.commit_id for entry in entries if batch_id in entry.batch_ids), None)

    def tracked(self, folder: str) -> list[str]:
        """The files below a folder at HEAD; none before the first commit."""
        head = self.head()
        if head is None:
            return []
        raw = self.git.run("ls-tree", "-r", "-z", "--name-only", "--full-tree", head, "--", f"{folder}/")
        found: list[str] = []
        for name in raw.split(b"\0"):
            with suppress(UnicodeDecodeError):  # one that is no text is nobody's page
                found.append(name.decode())
        return [name for name in found if name]

    def content(self, commit: str, file: str, max_bytes: int) -> bytes:
        """A file's bytes at a commit. `NotFound` when it is not there, `Invalid` when it is no plain file or too large."""
        if not self.git.is_there():
            raise NotFound("the wiki has no history yet")
        named = revision(commit)
        try:
            tree = self.git.run("rev-parse", "--verify", "--quiet", f"{named}^{{commit}}").decode().strip()
        except GitFailed as error:
            raise NotFound(f"the wiki's history has no commit {named}") from error
        listed = self.git.run("ls-tree", "-z", "--full-tree", tree, "--", file)
        if not listed:
            raise NotFound(f"{file} is not in commit {named}")
        mode, kind, object_id = listed.split(b"\t", 1)[0].decode().split(" ")
        if kind != "blob" or not mode.startswith("100"):
            raise Invalid(f"{file} is no plain file in commit {named}")
        if int(self.git.run("cat-file", "-s", object_id)) > max_bytes:
            raise Invalid(f"{file} in commit {named} is longer than a page may be ({max_bytes} bytes)")
        return self.git.run("cat-file", "blob", object_id)


def _stream(changes: Iterable[FileChange], message: str, head: str | None, at: int) -> Generator[bytes]:
    """One commit in the words of fast-import."""
    yield f"commit {_MAKING}\ncommitter {AUTHOR} {at} +0000\n".encode()
    yield from _data(message.encode())
    if head is not None:
        yield f"from {head}\n".encode()
    for change in changes:
        if change.content is None:
            yield b"D " + _quoted(change.file) + b"\n"
        else:
            yield b"M 100644 inline " + _quoted(change.file) + b"\n"
            yield from _data(change.content)
    yield b"\ndone\n"


def _data(content: bytes) -> Generator[bytes]:
    yield f"data {len(content)}\n".encode()
    yield content
    yield b"\n"


def _quoted(file: str) -> bytes:
    return b'"' + file.encode().replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'


def _entry(parts: list[str]) -> LogEntry:
    commit_id, at, author, subject, batch_ids = parts
    return LogEntry(
        commit_id=commit_id.strip(),
        at=int(at),
        author=author,
        subject=subject,
        batch_ids=tuple(batch_ids.split()),
    )


def message_of(subject: str, lines: Iterable[str], *, batch_ids: Iterable[str], epoch: int) -> str:
    """A commit message: what happened, and trailers that say which batch it is, and whose. Only the last paragraph
    counts as trailers, so no line above can pretend to be one."""
    body = "\n".join(plain(line) for line in lines)
    trailers = "\n".join(
        [*(f"{BATCH_TRAILER}: {batch_id}" for batch_id in batch_ids), f"{EPOCH_TRAILER}: {epoch}"]
    )
    return "\n\n".join(part for part in (plain(subject), body, trailers) if part) + "\n"


def plain(text: str) -> str:
    """One line without control characters."""
    return " ".join(
        "".join(
            " " if unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") else char for char in text
        ).split()
    )

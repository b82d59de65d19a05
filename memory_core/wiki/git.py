"""Calling the git program on the wiki's repository, so that nothing but our own arguments decides what it does.

No file of a user or of the machine is read as configuration, and of the environment nothing is handed on.
What the repository's own configuration could start (hooks, monitors, filters, signing, helpers, remotes) is
switched off on each command line. Only commands that never touch the work tree are used, so attributes and
filters have nothing to work on. Revisions are hexadecimal, paths travel on standard input.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from memory_core import limits
from memory_core.errors import CoreError, Invalid

#: Win over the repository's own configuration, which a person may write for their own work in it.
_CONFIGURATION = {
    "core.fsync": "all",
    "core.fsyncMethod": "fsync",
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.untrackedCache": "false",
    "core.splitIndex": "false",
    "core.attributesFile": "/dev/null",
    "core.excludesFile": "/dev/null",
    "core.autocrlf": "false",
    "core.bare": "false",
    "core.symlinks": "false",
    "core.pager": "cat",
    "core.editor": "false",
    "core.askPass": "false",
    "core.sshCommand": "false",
    "core.logAllRefUpdates": "true",
    "core.alternateRefsCommand": "false",
    "diff.external": "",
    "credential.helper": "",
    "protocol.allow": "never",
    "commit.gpgSign": "false",
    "gpg.program": "false",
    "log.showSignature": "false",
    "log.mailmap": "false",
    "submodule.recurse": "false",
    "gc.auto": "0",
    "gc.autoDetach": "false",
    "gc.recentObjectsHook": "",
    "maintenance.auto": "false",
    "fastimport.unpackLimit": "20",
    "receive.denyCurrentBranch": "refuse",
    "i18n.logOutputEncoding": "UTF-8",
    "i18n.commitEncoding": "UTF-8",
}
_REVISION = re.compile(r"[0-9a-f]{4,64}")
#: Said when two git processes meet, or when somebody else's command holds a lock.
_BUSY = re.compile(
    rb"\.lock'?: File exists|cannot lock ref|Unable to create '.*\.lock'|is at [0-9a-f]+ but expected"
)
_FULL = re.compile(rb"No space left on device|Disk quota exceeded|Read-only file system")
_STRANGE = re.compile(
    rb"unknown repository (?:extension|version)|Expected git repo version|unsafe repository"
)


#: Without one of these git says that it is no repository. `git init` makes them one after the other, while others look.
_PARTS = ("HEAD", "objects", "refs")


class GitFailed(CoreError):
    """git did not do what it was told."""

    code = "git_failed"


class GitBusy(GitFailed):
    """Another git process holds a lock of the repository, or moved what was to be moved; try again later."""


class GitMissing(GitFailed):
    """The git program is not installed."""


class GitRefused(GitFailed):
    """The repository is of a kind that memoryd leaves alone; a person has to look at it."""


class GitGone(GitFailed):
    """The repository that was worked in is not there any more, or another one lies in its place."""


class GitStorage(GitFailed):
    """The disk cannot take what git writes; try again later."""


def revision(text: str) -> str:
    """`text` as an (abbreviated) commit id; `Invalid` for anything that is not plainly hexadecimal."""
    found = text.strip().lower()
    if not _REVISION.fullmatch(found):
        raise Invalid(f"not a revision: {text[:80]!a}; give a commit id in hexadecimal, 4 characters or more")
    return found


class Git:
    """The program, for one repository at `root/.git`. `temporary` is a directory for its home and its input."""

    def __init__(self, root: Path, temporary: Path) -> None:
        self._given = root
        self._temporary = temporary
        self._program = shutil.which("git")

    @property
    def root(self) -> Path:
        # The data directory may be reached through a symbolic link; git is shown where it is.
        return self._given.resolve()

    @property
    def directory(self) -> Path:
        return self.root / ".git"

    def is_there(self) -> bool:
        """Whether there is a repository: one that is just being made is none yet.

        Raises `GitRefused` for a `.git` that points elsewhere: it is not followed.
        """
        return self.identity() is not None and all((self.directory / part).exists() for part in _PARTS)

    def identity(self) -> tuple[int, int] | None:
        """Device and inode of the repository's directory; None where there is none. Raises as `is_there` does."""
        try:
            found = os.lstat(self.directory)
        except FileNotFoundError:
            return None
        if not stat.S_ISDIR(found.st_mode):
            raise GitRefused(f"{self.directory} is no directory; memoryd does not follow it")
        return found.st_dev, found.st_ino

    def version(self) -> str:
        """As git says it, for example 2.39.5."""
        return self.run("version", bare=True).decode("utf-8", "replace").split()[2]

    def run(
        self,
        *arguments: str,
        stdin: Iterable[bytes] = (),
        seconds: float = limits.GIT_COMMAND_SECONDS,
        environ: Mapping[str, str] | None = None,
        bare: bool = False,
    ) -> bytes:
        """What the command says on standard output. `bare` runs it outside of any repository.

        Raises `GitMissing`, `GitBusy`, `GitStorage`, `GitRefused`, else `GitFailed` with the first line that it said.
        """
        if self._program is None:
            raise GitMissing
        place = () if bare else (f"--git-dir={self.directory}", f"--work-tree={self.root}")
        command = [self._program, "--no-pager", "--literal-pathspecs", "--no-replace-objects", *place]
        for name, value in _CONFIGURATION.items():
            command += ["-c", f"{name}={value}"]
        with tempfile.TemporaryFile(dir=self._temporary) as given:
            for piece in stdin:
                given.write(piece)
            given.seek(0)
            try:
                done = subprocess.run(
                    [*command, *arguments],
                    stdin=given,
                    capture_output=True,
                    cwd=self.root,
                    env={**self._environment(), **(environ or {})},
                    timeout=seconds,
                    check=False,
                )
            except subprocess.TimeoutExpired as error:
                raise GitBusy(f"git {arguments[0]} took longer than {seconds:.0f} s and was ended") from error
            except OSError as error:
                raise GitFailed(f"git cannot be started: {error.strerror}") from error
        if done.returncode:
            raise _failure(arguments[0], done.returncode, done.stderr)
        return done.stdout

    def _environment(self) -> dict[str, str]:
        temporary = str(self._temporary)
        return {
            "PATH": os.pathsep.join(os.get_exec_path()),
            "HOME": temporary,
            "XDG_CONFIG_HOME": temporary,
            "TMPDIR": temporary,
            "LC_ALL": "C",
            "TZ": "UTC",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_SYSTEM": os.devnull,
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_CEILING_DIRECTORIES": str(self.root.parent),
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_ALLOW_PROTOCOL": "",
            "GIT_NO_LAZY_FETCH": "1",
        }


def _failure(what: str, code: int, said: bytes) -> GitFailed:
    lines = [line for line in said.decode("utf-8", "replace").splitlines() if line.strip()]
    message = f"git {what} ended with {code}: {lines[0][:300] if lines else 'it said nothing'}"
    for pattern, kind in ((_FULL, GitStorage), (_STRANGE, GitRefused), (_BUSY, GitBusy)):
        if pattern.search(said):
            return kind(message)
    return GitFailed(message)

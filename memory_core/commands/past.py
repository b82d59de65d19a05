"""Earlier versions of pages, made of what git holds of their files."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace

from memory_core import limits
from memory_core.commands.files import read_leniently
from memory_core.domain.page import PagePath
from memory_core.errors import CoreError
from memory_core.store.pages import NewVersion
from memory_core.wiki.git_past import PastFiles, PastState

CAUSE = "git"


class History:
    """What one project's files were, asked for while its pages are taken in. `redact` removes secrets from a text.

    git is asked when the first page wants to know. Where it cannot answer, the pages come without
    their past, and `trouble` says why.
    """

    def __init__(
        self, past: PastFiles, directory: str, files: Sequence[str], redact: Callable[[str], str]
    ) -> None:
        self._past = past
        self._directory = directory
        self._files = files
        self._redact = redact
        self._states: dict[str, list[PastState]] | None = None
        self.trouble: str | None = None

    def of(self, file: str, path: PagePath, sha256: bytes) -> tuple[tuple[NewVersion, ...], int | None]:
        """The versions before the one whose file has the hash `sha256`, oldest first, and when that one was committed, if it was."""
        try:
            if self._states is None:
                self._states = self._past.of(self._directory, self._files)
            states = self._states.get(file, [])
            contents = self._past.contents(states, limits.OUTSIDE_PAGE_MAX_BYTES) if states else {}
            self.trouble = None
        except CoreError as error:
            self.trouble = f"its earlier versions could not be read from git: {error}"
            return (), None
        versions: list[NewVersion] = []
        size_bytes = 0
        for state in reversed(states):
            version = self._version(path, contents.get(state.object_id), state.at)
            if version is None:
                continue
            size_bytes += len(version.content)
            if size_bytes > limits.HISTORY_PAGE_MAX_BYTES:
                break
            if versions and versions[-1].sha256 == version.sha256:
                versions.pop()  # a commit that left the text as it was; the older time counts
            versions.append(version)
        versions.reverse()
        if versions and versions[-1].sha256 == sha256:
            return tuple(versions[:-1]), versions[-1].created_at
        return tuple(versions), None

    def _version(self, path: PagePath, content: bytes | None, at: int) -> NewVersion | None:
        """None for what could never be a page: no text, or too long."""
        try:
            text = (content or b"\0").decode()
        except UnicodeDecodeError:
            return None
        if "\0" in text:
            return None
        version, _ = read_leniently(path, self._redact(text), hashlib.sha256(text.encode()).digest())
        return replace(version, cause=CAUSE, actor=CAUSE, created_at=at)

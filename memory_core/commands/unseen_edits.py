"""An edit by hand that nobody had seen when an agent wrote or deleted the same page: the edit is the newest version, and the agent is told.

A write is answered when it is committed; its file comes a moment later, and only then is an unseen edit taken in. So
the file is looked at here: where it holds bytes that memoryd did not make, the taking in is waited for.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import Any

from memory_core import limits
from memory_core.clock import Clock
from memory_core.domain.page import page_path
from memory_core.domain.project import Project
from memory_core.errors import CoreError
from memory_core.ids import id_bytes, id_text
from memory_core.store import pages, projects, wiki_files
from memory_core.store.database import Database
from memory_core.store.outbox import ABSENT, Promise, promise_for, state_of
from memory_core.store.transaction import Reading
from memory_core.wiki.exchange import Away
from memory_core.wiki.folders import check_home
from memory_core.wiki.layout import file_of
from memory_core.wiki.walk import WikiTree

logger = logging.getLogger(__name__)

SUPERSEDED = "superseded"
#: The page is written and can be found; its file comes when its folder is back, or what stands in its place is gone.
FILE_WAITS = "file_waits"


class _File(Enum):
    """The page's file as it is at this moment."""

    #: Nobody's edit is in the way: the version is on disk, or will be.
    SETTLED = auto()
    #: The version is there, but what was there before is not yet looked at.
    EXCHANGED = auto()
    #: Bytes that memoryd did not make.
    EDITED = auto()
    #: Something that is no file, or can be no page, came into its place since the write was taken.
    BLOCKED = auto()


_PATIENCE_SECONDS = {
    _File.SETTLED: 0.0,
    _File.EXCHANGED: 5 * limits.EDIT_POLL_SECONDS,
    _File.EDITED: limits.EDIT_WAIT_SECONDS,
    _File.BLOCKED: 0.0,
}


@dataclass(frozen=True, kw_only=True)
class _Look:
    """What the database says of a page that was just written."""

    project: Project | None
    #: Of its file; None: it is in place.
    promise: Promise | None
    #: No file of its project, and none at all, was ever seen.
    is_new: bool
    is_empty_wiki: bool
    #: See `_newest`.
    newest: bytes | None


class UnseenEdits:
    """Looks at pages' files after they were written; changes nothing."""

    def __init__(self, root: Path, database: Database, clock: Clock) -> None:
        self._root = root
        self._tree = WikiTree(root)
        self._database = database
        self._clock = clock

    def told(self, answer: Mapping[str, Any]) -> Mapping[str, Any]:
        """The answer of a page write or deletion, with what to do where somebody's edit of its file beat it. Never raises."""
        is_write = answer.get("version_id") is not None and answer.get("changed")
        is_deletion = answer.get("page_id") is not None and answer.get("deleted")
        if not is_write and not is_deletion:
            return answer
        try:
            look = self._look(answer)
            return self._looked(self._waiting(answer, look), look)
        except (CoreError, OSError) as error:
            # The write is committed: an error that is told of this look would say that nothing was kept.
            logger.warning(
                "a written page's file could not be looked at: %s",
                type(error).__name__,
                extra={"action": "unseen_edit_unknown"},
            )
            return answer

    def _look(self, answer: Mapping[str, Any]) -> _Look:
        """One snapshot of all that is asked of the database."""
        with self._database.snapshot() as reading:
            row = projects.named(reading, answer["workspace"], answer["project"])
            project = Project.from_row(row) if row is not None else None
            promise = project and promise_for(reading, file_of(project, page_path(answer["path"])))
            is_new = bool(project and promise and not wiki_files.is_any_known(reading, project.id))
            return _Look(
                project=project,
                promise=promise,
                is_new=is_new,
                is_empty_wiki=is_new and not wiki_files.is_any_known(reading),
                newest=_newest(reading, answer),
            )

    def _waiting(self, answer: Mapping[str, Any], look: _Look) -> Mapping[str, Any]:
        """The answer with a word that the page's file waits, where its project's folder, or the whole wiki, is away."""
        if look.project is None or look.promise is None:
            return answer
        try:
            check_home(self._root, look.project, is_new=look.is_new, is_empty_wiki=look.is_empty_wiki)
        except Away as error:
            done = "deleted" if answer.get("deleted") else "written and can be found"
            return _file_waits(answer, f"The page is {done}; its file waits, because {error}.")
        return answer

    def _looked(self, answer: Mapping[str, Any], look: _Look) -> Mapping[str, Any]:
        written = id_bytes(answer["version_id"]) if answer.get("version_id") else None
        waited = 0.0
        while True:
            promise = look.promise if look.newest == written else None
            file = self._file(promise) if promise else _File.SETTLED
            if waited >= _PATIENCE_SECONDS[file]:
                break
            self._clock.sleep(limits.EDIT_POLL_SECONDS)
            waited += limits.EDIT_POLL_SECONDS
            look = self._look(answer)
        newest = look.newest
        if file is _File.BLOCKED and promise is not None:
            return self._blocked(answer, promise)
        if file is _File.EDITED:
            note = f"{_said(answer)}; the edit is being taken in, so wait a moment first."
            return {**answer, **_undone(answer), "status": SUPERSEDED, "note": note}
        if newest is None or newest == written:
            return answer
        told = {"newest_version_id": id_text(newest), "note": f"{_said(answer)}."}
        return {**answer, **_undone(answer), "status": SUPERSEDED, **told}

    def _file(self, promise: Promise) -> _File:
        if promise.sha256 is not None and self._tree.occupied(promise.file) is not None:
            return _File.BLOCKED
        read = self._tree.read(promise.file, 0)
        found = state_of(read.sha256 if read else None)
        if found == state_of(promise.sha256):
            return _File.EXCHANGED
        if found in {*promise.expected, ABSENT}:
            return _File.SETTLED
        return _File.EDITED if self._tree.obstacle(promise.file) is None else _File.BLOCKED

    def _blocked(self, answer: Mapping[str, Any], promise: Promise) -> Mapping[str, Any]:
        obstacle = self._tree.obstacle(promise.file)
        if obstacle is None:
            return answer
        done = "deleted" if promise.sha256 is None else f"written as version {answer['version_id']}"
        note = (
            f"{answer['path']} is {done}, but not its file {promise.file}: {obstacle.reason}. What is there is left alone, and the"
            " file follows by itself when that is done."
        )
        return _file_waits(answer, note)


def _newest(reading: Reading, answer: Mapping[str, Any]) -> bytes | None:
    """The version of the page that counts, where it is what was written or an edit by hand; else None."""
    page = pages.page_by_id(reading, id_bytes(answer["page_id"]))
    if page is None:
        return None
    version = pages.version_row(reading, page.version_id)
    is_known = version is not None and (
        id_text(page.version_id) == answer.get("version_id") or version["cause"] == "external"
    )
    return page.version_id if is_known else None


def _file_waits(answer: Mapping[str, Any], note: str) -> Mapping[str, Any]:
    return {**answer, "status" if answer.get("deleted") else "index_status": FILE_WAITS, "note": note}


def _undone(answer: Mapping[str, Any]) -> dict[str, Any]:
    return {"deleted": False} if answer.get("deleted") else {}


def _said(answer: Mapping[str, Any]) -> str:
    edited = f"{answer['path']} was edited by hand and the edit had not been seen yet. The edit counts"
    if answer.get("deleted"):
        return f"{edited}, and the page is there. Read it, and delete it again if it is still to go"
    return (
        f"{edited}; what you wrote is kept below it as version {answer['version_id']}."
        " Read the page, and write it again with both if something of yours is missing"
    )

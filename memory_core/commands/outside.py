"""What people did to the wiki's files, entered into the books: bounded, and only where nothing has changed since it was found."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from memory_core.commands import knowledge_pages
from memory_core.commands.folders import add_project, move_project
from memory_core.commands.lost_writes import NOTHING_LOST, is_own_lost_write
from memory_core.commands.pages import store_version
from memory_core.domain.page import PagePath, page_path
from memory_core.domain.project import Project
from memory_core.domain.wiki_file import FileStat
from memory_core.ids import id_text
from memory_core.store import links, pages, projects, rendered, wiki_files, wiki_tasks
from memory_core.store.audit import record
from memory_core.store.outbox import ABSENT, Promise, clear_promise, promise_file, promise_for, state_of
from memory_core.store.pages import NewVersion, StoredPage
from memory_core.store.past_versions import add_page_of
from memory_core.store.transaction import Transaction
from memory_core.store.wiki_files import SeenFile
from memory_core.wiki.layout import file_of, project_directory

logger = logging.getLogger(__name__)

#: How a file looks at this moment; None when there is none.
LookAt = Callable[[str], "FileStat | None"]


#: Counted beside what became of the findings: versions from the history.
EARLIER = "earlier_versions"


class What(StrEnum):
    #: It holds what the books say, or nothing that can be taken in: only its look is noted.
    SEEN = "seen"
    #: New or edited: its text is the newest version.
    WRITTEN = "written"
    #: A page's file has another name.
    MOVED = "moved"
    #: A page's file is deleted.
    GONE = "gone"
    #: A page's file is lost or broken and is written again.
    REWRITTEN = "rewritten"
    #: A directory names a project that the database does not know.
    ADOPTED = "adopted"
    #: A project's directory has another name: `file` is the new one, `old_file` the old one.
    RELOCATED = "relocated"
    #: A row about a file that is not there and is no page's.
    FORGOTTEN = "forgotten"
    #: A rendered file is gone, or holds something else.
    UNRENDERED = "unrendered"
    #: What was found did not hold any more; the next look finds what holds.
    STALE = "stale"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One difference between the books and the disk. `file` is relative to the wiki root."""

    what: What
    project: Project
    file: str
    seen: SeenFile | None = None
    #: The text as it was found, redacted.
    version: NewVersion | None = None
    #: Earlier versions of a page that is new to the books, oldest first.
    past: tuple[NewVersion, ...] = ()
    page_id: bytes | None = None
    #: The page's latest version when this was found.
    base_version: bytes | None = None
    old_file: str | None = None

    @property
    def path(self) -> PagePath:
        return page_path(self.file.removeprefix(project_directory(self.project) + "/"))

    @property
    def size_bytes(self) -> int:
        return sum(len(version.content) for version in (self.version, *self.past) if version)


def apply_findings(
    tx: Transaction,
    findings: Sequence[Finding],
    look_at: LookAt,
    is_over: Callable[[], bool],
    *,
    lost_before: int = NOTHING_LOST,
) -> tuple[int, Counter[str]]:
    """Enter the first findings into the books, one at least, until the time `is_over`; how many, and what became of them.

    `lost_before`: see `memory_core.commands.lost_writes`.
    """
    counts: Counter[str] = Counter()

    @cache
    def is_there(project_id: bytes) -> bool:
        return projects.by_id(tx, project_id) is not None

    for number, finding in enumerate(findings):
        if number and is_over():
            return number, counts
        became = _apply(tx, finding, look_at, is_there, lost_before)
        counts[became.value] += 1
        if finding.past and became is What.WRITTEN:
            counts[EARLIER] += len(finding.past)
    return len(findings), counts


def _apply(
    tx: Transaction, finding: Finding, look_at: LookAt, is_there: Callable[[bytes], bool], lost_before: int
) -> What:
    if finding.what is What.ADOPTED:
        return _adopt(tx, finding)
    if finding.what is What.RELOCATED:
        is_moved = finding.old_file and move_project(tx, finding.project, finding.old_file, finding.file)
        return finding.what if is_moved else What.STALE
    if finding.what is What.FORGOTTEN:
        wiki_files.forget(tx, finding.project.id, [finding.file])
        return finding.what
    if finding.what is What.UNRENDERED:
        rendered.restore(tx, finding.project.id, finding.file)
        return finding.what
    if not is_there(finding.project.id) or not _holds(tx, finding, look_at):
        return What.STALE
    what = What.REWRITTEN if _is_lost_write(tx, finding, lost_before) else finding.what
    done = _BY_KIND[what](tx, finding)
    if done and finding.seen is not None and what is not What.REWRITTEN:
        wiki_files.note(tx, finding.project.id, finding.file, finding.seen)
    return what if done else What.STALE


def _is_lost_write(tx: Transaction, finding: Finding, lost_before: int) -> bool:
    """Whether an older text of a page is there because a power cut took the newest one back."""
    if finding.what is not What.WRITTEN or finding.page_id is None or finding.seen is None:
        return False
    return is_own_lost_write(tx, finding.page_id, finding.seen.sha256, lost_before=lost_before)


def _holds(tx: Transaction, finding: Finding, look_at: LookAt) -> bool:
    """Whether the files still look like what was found, and the writer has promised nothing else for them."""
    if promise_for(tx, finding.file) is not None:
        return False
    if finding.old_file is not None and (
        promise_for(tx, finding.old_file) is not None or look_at(finding.old_file) is not None
    ):
        return False
    return look_at(finding.file) == (finding.seen.stat if finding.seen else None)


def _seen(_tx: Transaction, _finding: Finding) -> bool:
    return True


def _written(tx: Transaction, finding: Finding) -> bool:
    path, version = finding.path, finding.version
    before = pages.page_at(tx, finding.project.id, path.key)
    if version is None or (before.version_id if before else None) != finding.base_version:
        return False
    if before is not None and before.path != path.path:
        promised = _promised_elsewhere(tx, finding, before)
        pages.move(tx, before.id, path)
        if promised is not None and finding.seen is not None:
            _promise_here(tx, finding, promised)
            return True
    before = before or pages.revive(tx, finding.project.id, path)
    if before is None and finding.past:
        before = add_page_of(tx, finding.project, path, finding.past)
    page_id, _ = store_version(tx, finding.project, path, before, version, is_on_disk=True)
    knowledge_pages.add_past(tx, page_id, finding.past)
    return True


def _promised_elsewhere(tx: Transaction, finding: Finding, page: StoredPage) -> Promise | None:
    """Take back what was promised for a page's file under another spelling of its name: it would be a second file of the page.

    The promise is given where the file that is there holds a state that memoryd itself made: it was renamed and not edited.
    """
    promise = promise_for(tx, file_of(finding.project, page_path(page.path)))
    if promise is None:
        return None
    clear_promise(tx, promise.seq)
    is_own = finding.seen is not None and state_of(finding.seen.sha256) in promise.expected
    return promise if is_own and promise.version_id is not None else None


def _promise_here(tx: Transaction, finding: Finding, promise: Promise) -> None:
    """What was promised under another spelling is to come into the file as it is spelled."""
    promise_file(
        tx,
        finding.project.id,
        page_id=promise.page_id,
        file=finding.file,
        found=state_of(finding.seen.sha256) if finding.seen else ABSENT,
        version_id=promise.version_id,
        sha256=promise.sha256,
    )


def _moved(tx: Transaction, finding: Finding) -> bool:
    page, path, version = _page(tx, finding), finding.path, finding.version
    there = pages.page_at(tx, finding.project.id, path.key)
    if page is None or version is None or (there is not None and there.id != page.id):
        return False
    pages.move(tx, page.id, path)
    record(
        tx,
        "move_page",
        project_id=finding.project.id,
        page_id=page.id,
        detail={"from": page.path, "to": path.path, "cause": version.cause},
    )
    store_version(tx, finding.project, path, page, version, is_on_disk=True)
    if finding.old_file is not None:
        wiki_files.forget(tx, finding.project.id, [finding.old_file])
    return True


def _gone(tx: Transaction, finding: Finding) -> bool:
    page = _page(tx, finding)
    if page is None:
        return False
    pages.tombstone(tx, page)
    links.drop(tx, page.id)
    knowledge_pages.follow_file(tx, finding.project, page.id)
    record(
        tx,
        "delete_page",
        project_id=finding.project.id,
        page_id=page.id,
        detail={"cause": "external", "version": id_text(page.version_id)},
    )
    wiki_files.forget(tx, finding.project.id, [finding.file])
    return True


def _rewritten(tx: Transaction, finding: Finding) -> bool:
    page = _page(tx, finding)
    if page is None:
        return False
    promise_file(
        tx,
        finding.project.id,
        page_id=page.id,
        file=file_of(finding.project, page_path(page.path)),
        found=state_of(finding.seen.sha256) if finding.seen else ABSENT,
        version_id=page.version_id,
        sha256=page.sha256,
    )
    return True


def _page(tx: Transaction, finding: Finding) -> StoredPage | None:
    """The page that was found, unless it has another version by now."""
    page = pages.page_by_id(tx, finding.page_id) if finding.page_id else None
    return page if page is not None and page.version_id == finding.base_version else None


_BY_KIND: dict[What, Callable[[Transaction, Finding], bool]] = {
    What.SEEN: _seen,
    What.WRITTEN: _written,
    What.MOVED: _moved,
    What.GONE: _gone,
    What.REWRITTEN: _rewritten,
}


def _adopt(tx: Transaction, finding: Finding) -> What:
    """Make a project that its directory names, with the id that it had."""
    project = finding.project
    if projects.by_id(tx, project.id) is not None or projects.named(tx, project.workspace, project.name):
        return What.STALE
    add_project(
        tx, workspace=project.workspace, name=project.name, project_id=project.id, folder=finding.file
    )
    record(tx, "adopt_project", project_id=project.id, detail={"directory": finding.file})
    return What.ADOPTED


def count_for_task(tx: Transaction, counts: Counter[str], *, is_finished: bool = False) -> None:
    """What was done counts for the task that is open, if any."""
    task = wiki_tasks.open_task(tx)
    if task is not None:
        wiki_tasks.count(tx, task, counts, is_finished=is_finished)
        if is_finished:
            logger.info(
                "a task on the wiki is done", extra={"action": "wiki_task_done", "task": task.kind, **counts}
            )

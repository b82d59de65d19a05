"""The writer's side of the file outbox: which files to install, and what an installation means for the books.

After a batch is committed and its entries are deleted, the writer calls `install_step` until nothing
is left; at start `clean_leftovers` comes first. Both run under the lock that owns the connection.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

from memory_core import limits
from memory_core.clock import MICROSECONDS
from memory_core.commands import rendering
from memory_core.commands.lost_writes import NOTHING_LOST, is_own_lost_write
from memory_core.commands.pages import project_of, store_version
from memory_core.domain.front_matter import facts_from
from memory_core.domain.knowledge import read_head
from memory_core.domain.page import PagePath, Tier, clean_title, kind_for, page_path, title_of
from memory_core.domain.project import Project
from memory_core.errors import NotFound
from memory_core.store import git_batches, pages, wiki_files
from memory_core.store.outbox import Promise, clear_promise, promise_file, promise_for, promises, state_of
from memory_core.store.transaction import Reading, Transaction
from memory_core.wiki import front_matter
from memory_core.wiki.layout import TEMPORARY, project_directory
from memory_core.wiki.outbox import Installer, Order, Outcome, Result

logger = logging.getLogger(__name__)
T = TypeVar("T")

#: Their rows stay as they are.
_UNSETTLED = (Result.BLOCKED, Result.HELD)

#: Number of a promise's row, the hash that its file is to have, and the file, which follows a folder that is renamed.
Key = tuple[int, bytes | None, str]

#: Removes secrets from a text.
Redact = Callable[[str], str]


class Transact(Protocol):
    def __call__(self, work: Callable[[Transaction], T], /) -> T:
        """Run `work` in one write transaction of its own, commit it, and give back what it returned."""
        ...


@dataclass(frozen=True, kw_only=True)
class StepReport:
    """What one step did, in rows. `last` is the row to go on behind; `more` whether there may be further ones."""

    installed: int
    external: int
    blocked: int
    #: In place, but a program has what was there before open for writing: to be looked at again soon.
    held: int
    last: int
    more: bool
    #: The orders of this step that something stood in the way of, and what.
    obstacles: tuple[Outcome, ...] = ()
    #: The promises that this step saw, and those that it did not leave.
    promised: frozenset[Key] = frozenset()
    tried: frozenset[Key] = frozenset()


def _order(reading: Reading, promise: Promise) -> Order:
    is_new = not wiki_files.is_any_known(reading, promise.project_id)
    version = pages.version_row(reading, promise.version_id) if promise.version_id else None
    rendered = rendering.content_of(reading, promise) if version is None else None
    return Order(
        seq=promise.seq,
        file=promise.file,
        expected=promise.expected,
        sha256=promise.sha256,
        content=version["content"].encode() if version is not None else rendered,
        project=project_of(reading, promise.project_id),
        is_new=is_new,
        is_empty_wiki=is_new and not wiki_files.is_any_known(reading),
        max_bytes=limits.OUTSIDE_PAGE_MAX_BYTES if rendered is None else rendering.EDIT_MAX_BYTES,
        is_page=version is not None,
    )


def settle(
    tx: Transaction, outcomes: list[Outcome], redact: Redact, *, lost_before: int = NOTHING_LOST
) -> None:
    """Enter into the books what an installation found: rows of files that are in place go, foreign bytes become versions.

    `lost_before`: see `lost_writes`.
    """
    for outcome in outcomes:
        promise = promise_for(tx, outcome.order.file)
        if promise is None or outcome.result in _UNSETTLED:
            continue
        if outcome.result is Result.FOUND:
            if not rendering.keep_edit(
                tx, promise, outcome.sha256 or b"", partial(_text_of, outcome, redact)
            ):
                _take_in(tx, promise, outcome, redact, lost_before)
        elif promise.sha256 == outcome.order.sha256:
            if promise.version_id is not None and outcome.sha256 not in (None, promise.sha256):
                # The bytes from outside are lost (somebody deleted them); their redacted text is there now.
                pages.set_file_hash(tx, promise.version_id, outcome.sha256 or b"")
            clear_promise(tx, promise.seq)
            if not 0 <= tx.now - promise.created_at < limits.GIT_QUIET_SECONDS * MICROSECONDS:
                # The history may have left it out while something stood in its place.
                git_batches.note_again(tx, promise.page_id)


def _take_in(tx: Transaction, promise: Promise, outcome: Outcome, redact: Redact, lost_before: int) -> None:
    """Make found bytes the newest version. Their file stays as it is; only what is indexed and shown is redacted."""
    project = project_of(tx, promise.project_id)
    if is_own_lost_write(tx, promise.page_id, outcome.sha256, lost_before=lost_before):
        _put_back(tx, promise, outcome.sha256)
        return
    page = pages.page_by_id(tx, promise.page_id)
    path = page_path(page.path) if page else _path_in(project, promise.file)
    text = _text_of(outcome, redact)
    version = external_version(path, text, outcome.sha256 or b"")
    before = page or pages.page_at(tx, project.id, path.key)
    if before is None and promise.sha256 is None:
        # It was deleted while somebody edited it: the edit counts, and the page is the one that it was.
        before = pages.revive(tx, project.id, path)
    store_version(tx, project, path, before, version, found=state_of(promise.sha256))
    logger.warning(
        "a page was edited while it was written; the edit is the newest version, the written one is below it",
        extra={"action": "wiki_edit_taken_in", "file": promise.file},
    )


def _put_back(tx: Transaction, promise: Promise, found: bytes | None) -> None:
    """Expect these bytes too: the next pass exchanges them for what was promised."""
    promise_file(
        tx,
        promise.project_id,
        page_id=promise.page_id,
        file=promise.file,
        found=state_of(found),
        version_id=promise.version_id,
        sha256=promise.sha256,
    )
    logger.warning(
        "a file had gone back to an older state of its page at an unclean stop; it gets the newest one again",
        extra={"action": "wiki_lost_write", "file": promise.file},
    )


def _text_of(outcome: Outcome, redact: Redact) -> str:
    """What was found, redacted. The installer gives no bytes that are no text."""
    return redact(outcome.found.decode())


def external_version(path: PagePath, text: str, sha256: bytes) -> pages.NewVersion:
    """A version made of a file as somebody left it: read leniently, kept as it is. `text` is redacted."""
    return read_leniently(path, text, sha256)[0]


def read_leniently(
    path: PagePath, text: str, sha256: bytes, *, cause: str = "external"
) -> tuple[pages.NewVersion, str | None]:
    """The version that a file makes, and what of its front matter could not be used."""
    read = front_matter.read(text)
    facts, problems = facts_from(read.values)
    body = text[read.body_start :]
    title = facts.title or title_of(body) or clean_title(path.stem)
    trouble = read.problem or ("; ".join(problems) or None)
    version = pages.NewVersion(
        title=title,
        kind=facts.kind or kind_for(path),
        tier=facts.tier or Tier.SEMANTIC,
        tags=facts.tags or (),
        pinned=bool(facts.pinned) or path.is_slot,
        expires_at=facts.expires_at,
        content=text,
        body_start=read.body_start,
        sha256=sha256,
        path=path.path,
        cause=cause,
        session_id=None,
        actor=cause,
        entities=facts.entities or (),
        shows=read_head(read.values),
    )
    return version, trouble


def _path_in(project: Project, file: str) -> PagePath:
    inside = file.removeprefix(project_directory(project) + "/")
    if inside == file:
        raise NotFound("a promised file does not lie in its project's directory")
    return page_path(inside)


def install_step(
    transact: Transact,
    installer: Installer,
    redact: Redact,
    *,
    after: int = 0,
    lost_before: int = NOTHING_LOST,
    leave: Collection[Key] = (),
) -> StepReport:
    """Install the next promised files behind row `after` and settle them in one transaction; those of `leave`
    wait."""

    def wanted(tx: Transaction) -> tuple[list[Promise], list[Order]]:
        rows = promises(tx, after=after, limit=limits.OUTBOX_STEP_ROWS)
        return rows, [_order(tx, row) for row in rows if (row.seq, row.sha256, row.file) not in leave]

    rows, orders = transact(wanted)
    outcomes = installer.install(orders)
    if any(outcome.result not in _UNSETTLED for outcome in outcomes):
        transact(lambda tx: settle(tx, outcomes, redact, lost_before=lost_before))
    results = [outcome.result for outcome in outcomes]
    external = results.count(Result.FOUND)
    return StepReport(
        installed=results.count(Result.INSTALLED),
        external=external,
        blocked=results.count(Result.BLOCKED),
        held=results.count(Result.HELD),
        # What was found has a promise of its own under the same number: the next step begins with it.
        last=rows[-1].seq if rows and not external else after,
        more=external > 0 or len(rows) == limits.OUTBOX_STEP_ROWS,
        promised=frozenset((row.seq, row.sha256, row.file) for row in rows),
        tried=frozenset((order.seq, order.sha256, order.file) for order in orders),
        obstacles=tuple(outcome for outcome in outcomes if outcome.result is Result.BLOCKED),
    )


def clean_leftovers(reading: Reading, installer: Installer) -> list[str]:
    """Delete what interrupted installations left behind without a row; the leftovers that hold unknown bytes are returned.

    A `.t-` file is a draft of ours. A `.x-` file goes when some version has its bytes.
    """
    rows = {row.seq for row in _all_promises(reading)}
    unknown: list[str] = []
    for file in installer.leftovers():
        name = file.rsplit("/", 1)[-1]
        if name.startswith(TEMPORARY[0]):
            installer.discard(file)
            continue
        number = name.removeprefix(TEMPORARY[1]).removesuffix("-old").removesuffix("-held")
        if number.isdecimal() and int(number) in rows:
            continue
        sha256 = installer.hash_of(file)
        if sha256 is not None and pages.hash_is_known(reading, sha256):
            installer.discard(file)
        else:
            unknown.append(file)
            logger.error(
                "a file that was taken out of the wiki belongs to no page; look at it and delete it",
                extra={"action": "wiki_leftover", "file": file},
            )
    return unknown


def _all_promises(reading: Reading) -> list[Promise]:
    found: list[Promise] = []
    while page := promises(reading, after=found[-1].seq if found else 0, limit=limits.OUTBOX_STEP_ROWS):
        found.extend(page)
    return found

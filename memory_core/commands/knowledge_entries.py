"""Entries of knowledge and the pages that show them, changed together: what every change of an entry is made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from memory_core.commands import knowledge_pages
from memory_core.commands.knowledge_pages import CAUSE, head_for, next_version
from memory_core.commands.pages import project_of, store_version
from memory_core.commands.removing import remove_page
from memory_core.commands.versions import PageDraft, new_version
from memory_core.domain.directory import DirectoryId
from memory_core.domain.knowledge import HEAD_KEY, Origin, Provenance, head_values, page_paths
from memory_core.domain.page import PagePath, clean_title, page_path
from memory_core.errors import Conflict, Invalid
from memory_core.store import knowledge, pages
from memory_core.store import knowledge_changes as changes
from memory_core.store.knowledge import Entry
from memory_core.store.knowledge_changes import Said
from memory_core.store.transaction import Reading, Transaction

#: An empty front matter before a text, so that one that begins like a front matter stays a text.
_NO_HEAD = "---\n---\n"


def learn(
    tx: Transaction,
    said: Said,
    *,
    entry: Entry | None,
    project_id: bytes,
    directory: DirectoryId,
    key: str,
    pinned: bool | None = None,
) -> Entry:
    """A new version of an entry (or the first one of a new entry), which holds from now on and is shown by its page.

    `project_id`, `directory` and `key` are those of the entry where there is one. `pinned`: as it was, unless given. Raises `Conflict`
    before it writes, where an entry takes no further version.
    """
    number = next_version(tx, entry)
    pin = pinned if pinned is not None else bool(entry and entry.pinned)
    made = entry or unwritten(tx.new_id(), project_id, directory, key, said)
    page_id = show(tx, made, number, said, pinned=pin)
    if entry is None:
        changes.add(
            tx,
            made.id,
            project_id=project_id,
            directory=directory,
            key=key,
            page_id=page_id,
            active_version=number,
            pinned=pin,
        )
    changes.add_version(tx, made.id, number, said, actor=tx.principal)
    if entry is not None:
        changes.activate(tx, made.id, number, page_id=page_id, pinned=pin)
    return _again(tx, made.id)


def keep_aside(tx: Transaction, entry: Entry, said: Said) -> int:
    """A new version that does not hold; its number. Raises `Conflict` before it writes."""
    number = next_version(tx, entry)
    changes.add_version(tx, entry.id, number, said, actor=tx.principal)
    return number


def point_to(tx: Transaction, entry: Entry, number: int, said: Said, *, pinned: bool) -> Entry:
    """Make a version that there is the one that holds; an entry that was forgotten is known again."""
    page_id = show(tx, entry, number, said, pinned=pinned)
    changes.activate(tx, entry.id, number, page_id=page_id, pinned=pinned)
    return _again(tx, entry.id)


def forget(
    tx: Transaction,
    entry: Entry,
    origin: Origin,
    confidence: float,
    *,
    provenance: Provenance | None = None,
    job_id: bytes | None = None,
    candidate_index: int | None = None,
) -> None:
    """Hide an entry that is known, with its page and file."""
    page = pages.page_by_id(tx, entry.page_id) if entry.page_id else None
    if page is not None:
        remove_page(tx, project_of(tx, entry.project_id), page)
    changes.bury(
        tx,
        entry.id,
        origin,
        confidence,
        provenance=provenance,
        job_id=job_id,
        candidate_index=candidate_index,
    )


# --- the page ------------------------------------------------------------------------------------


def show(tx: Transaction, entry: Entry, number: int, said: Said, *, pinned: bool) -> bytes:
    """Have the page of an entry say a version; the page's id. A page that says it already gets no new version of its own.

    Raises `Conflict` before it writes, where the front matter that somebody wrote into the page leaves no room.
    """
    project = project_of(tx, entry.project_id)
    spot = _spot(tx, entry)
    before = spot.before
    is_same_text = before is not None and before.body == said.content
    draft = PageDraft(
        path=spot.path,
        body=_NO_HEAD + said.content,
        title=clean_title(entry.key),
        pinned=pinned,
        # An end belongs to the text that it was set for.
        expires_at=before.expires_at if before is not None and is_same_text else None,
        cause=CAUSE,
        session_id=said.source_session_id,
        own_keys={HEAD_KEY: head_values(head_for(entry, number, said))},
    )
    try:
        version = new_version(draft, before, tx.principal)
    except Invalid as error:
        raise Conflict(str(error)) from error
    if before is not None and (before.content, before.sha256) == (version.content, version.sha256):
        return before.id
    page_id, _ = store_version(tx, project, spot.path, before, version, revived=spot.revived)
    return page_id


@dataclass(frozen=True, kw_only=True)
class _Spot:
    """Where an entry's page is, or is to be."""

    path: PagePath
    before: pages.StoredPage | None
    revived: bytes | None = None


def _spot(reading: Reading, entry: Entry) -> _Spot:
    if entry.page_id is not None and entry.page_path is not None:
        own = page_path(entry.page_path)
        if entry.page_is_live:
            return _Spot(path=own, before=pages.page_by_id(reading, entry.page_id))
        if pages.page_at(reading, entry.project_id, own.key) is None:
            return _Spot(path=own, before=None, revived=knowledge_pages.buried_page(entry))
    for path in _free_paths(entry):
        there = pages.page_at(reading, entry.project_id, path.key)
        if there is None or knowledge.by_page(reading, there.id) is None:
            return _Spot(path=path, before=there)
    raise Conflict("every name that the page of this entry could have is taken by another entry")


def _free_paths(entry: Entry) -> Iterator[PagePath]:
    return page_paths(entry.directory, entry.key)


def unwritten(entry_id: bytes, project_id: bytes, directory: DirectoryId, key: str, said: Said) -> Entry:
    """An entry that is to be, with its first version; it has no page yet."""
    return Entry(
        id=entry_id,
        project_id=project_id,
        workspace="",
        project="",
        directory=directory,
        key=key,
        version=1,
        content=said.content,
        confidence=said.confidence,
        origin=said.origin,
        pinned=False,
        tombstoned_at=None,
        is_legacy=False,
        created_at=0,
        updated_at=0,
        page_id=None,
        page_path=None,
        page_is_live=False,
        page_expires_at=None,
    )


def _again(reading: Reading, entry_id: bytes) -> Entry:
    found = knowledge.by_id(reading, entry_id)
    if found is None:
        raise Conflict("the entry is gone")
    return found


def said_by(reading: Reading, entry: Entry, number: int) -> Said | None:
    """What a version of an entry says; None where there is no such version."""
    version = knowledge.version(reading, entry.id, number)
    if version is None:
        return None
    return Said(
        content=version.content,
        confidence=version.confidence,
        origin=version.origin,
        provenance=version.provenance,
        source_session_id=version.source_session_id,
    )

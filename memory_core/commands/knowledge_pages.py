"""How knowledge follows its pages: whoever writes, edits, restores or deletes a knowledge page changes the entry that it shows.

The page shows the active version. A text that is written to it by anybody is a new version of its own hand; a page that
goes is an entry that is forgotten. Changes that begin at the entry are in `knowledge_entries`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from memory_core import limits
from memory_core.commands.versions import PageDraft
from memory_core.domain.knowledge import (
    HEAD_KEY,
    MANUAL_CONFIDENCE,
    Head,
    Origin,
    checked_content,
    content_digest,
    head_values,
)
from memory_core.domain.page import PagePath
from memory_core.domain.project import Project
from memory_core.errors import Conflict, Invalid
from memory_core.ids import id_text
from memory_core.store import knowledge, pages, sessions
from memory_core.store import knowledge_changes as changes
from memory_core.store.knowledge import Entry
from memory_core.store.knowledge_changes import Said
from memory_core.store.pages import NewVersion, StoredPage
from memory_core.store.transaction import Reading, Transaction
from memory_core.wiki import front_matter

logger = logging.getLogger(__name__)

#: Of page versions that a change of their entry made: the entry is in step already.
CAUSE = "knowledge"
#: Files may name entries that the database does not know: it was lost, or they come from another install.
_FROM_FILES = ("external", "reindex")


def entry_at(
    reading: Reading, project_id: bytes | None, path: PagePath, before: StoredPage | None
) -> Entry | None:
    """The entry whose page lies at a path (`before`), or was deleted last there."""
    if before is not None:
        return knowledge.by_page(reading, before.id)
    return None if project_id is None else knowledge.buried_at(reading, project_id, path.key)


def next_version(reading: Reading, entry: Entry | None) -> int:
    """The number of an entry's next version; `Conflict` where there can be no further one."""
    number = 1 if entry is None else knowledge.newest_version(reading, entry.id) + 1
    if number > limits.KNOWLEDGE_VERSION_MAX:
        raise Conflict("this entry has as many versions as there can be; forget it and use another key")
    return number


def draft_for(
    reading: Reading, project_id: bytes | None, draft: PageDraft, before: StoredPage | None
) -> PageDraft:
    """A draft of any page; that of a knowledge page gets the front matter of the version that it will be.

    Raises `Invalid` for a text that cannot be known, and for one that names an entry which its page does not show:
    whose a fact is, and how sure, is never taken from what an agent writes.
    """
    if draft.cause == CAUSE:
        return draft
    entry = entry_at(reading, project_id, draft.path, before)
    own = front_matter.read(draft.body)
    if entry is None:
        if HEAD_KEY in own.values and draft.cause not in _FROM_FILES:
            raise Invalid(f"{HEAD_KEY} in the front matter is memoryd's own key; leave that line out")
        return draft
    content = checked_content(draft.body[own.body_start :])
    if content == entry.content:
        head = head_of(reading, entry)
    else:
        said = Said(content=content, confidence=MANUAL_CONFIDENCE, origin=Origin.MANUAL)
        head = head_for(entry, next_version(reading, entry), said)
    return replace(draft, own_keys={HEAD_KEY: head_values(head)})


def head_of(reading: Reading, entry: Entry) -> Head:
    """The front matter of an entry's active version."""
    active = knowledge.version(reading, entry.id, entry.version)
    said = Said(
        content=entry.content,
        confidence=entry.confidence,
        origin=entry.origin,
        provenance=active.provenance if active else None,
    )
    return head_for(entry, entry.version, said)


def head_for(entry: Entry, number: int, said: Said) -> Head:
    return Head(
        id=entry.id,
        directory=entry.directory,
        key=entry.key,
        version=number,
        confidence=said.confidence,
        origin=said.origin,
        provenance=said.provenance,
        digest=content_digest(said.content),
    )


def follow(tx: Transaction, project: Project, page_id: bytes, version: NewVersion) -> None:
    """A page has a new version: the entry that it shows says so, is pinned as the page is, and is known again."""
    if version.cause == CAUSE:
        return
    entry = knowledge.by_page(tx, page_id)
    content = version.content[version.body_start :]
    if not content.strip():
        # Somebody emptied the file: it says nothing yet, and the entry still says what it did.
        return
    if entry is None:
        if version.cause in _FROM_FILES:
            _adopt(tx, project, page_id, version)
        return
    session_id = _known_session(tx, version.session_id)
    _catch_up(tx, entry, page_id, content, pinned=version.pinned, actor=version.actor, session_id=session_id)


def _catch_up(
    tx: Transaction,
    entry: Entry,
    page_id: bytes,
    content: str,
    *,
    pinned: bool,
    actor: str,
    session_id: bytes | None,
) -> None:
    """Have an entry say what a page says."""
    number = entry.version
    if content != entry.content:
        try:
            number = next_version(tx, entry)
        except Conflict:
            logger.error(
                "a knowledge page was edited, and its entry takes no further version",
                extra={"action": "knowledge_full", "entry": id_text(entry.id)},
            )
            return
        said = Said(
            content=content,
            confidence=MANUAL_CONFIDENCE,
            origin=Origin.MANUAL,
            source_session_id=session_id,
        )
        changes.add_version(tx, entry.id, number, said, actor=actor)
    elif (entry.is_forgotten, entry.pinned, entry.page_id) == (False, pinned, page_id):
        return
    changes.activate(tx, entry.id, number, page_id=page_id, pinned=pinned)


def forget_page(tx: Transaction, page_id: bytes) -> None:
    """A page was deleted: its entry is forgotten, by hand."""
    entry = knowledge.by_page(tx, page_id)
    if entry is not None and not entry.is_forgotten:
        changes.bury(tx, entry.id, Origin.MANUAL, MANUAL_CONFIDENCE)


def follow_file(tx: Transaction, project: Project, page_id: bytes) -> None:
    """A page's file is gone. Where another page of the project names its entry (the file was renamed and edited at once, or
    there is a copy), that one shows it from now on; else it is forgotten."""
    entry = knowledge.by_page(tx, page_id)
    other = None if entry is None else knowledge.other_page(tx, project.id, entry.id)
    page = pages.page_by_id(tx, other) if other is not None else None
    if entry is None or entry.is_forgotten or page is None or not page.body.strip():
        forget_page(tx, page_id)
        return
    _catch_up(tx, entry, page.id, page.body, pinned=page.pinned, actor="external", session_id=None)


def _known_session(reading: Reading, session_id: bytes | None) -> bytes | None:
    if session_id is None or sessions.one(reading, session_id) is None:
        return None
    return session_id


# --- entries that only files know ----------------------------------------------------------------


def _adopt(tx: Transaction, project: Project, page_id: bytes, version: NewVersion) -> None:
    """Make the entry that a file names. A copy of a file whose entry is known is an ordinary page."""
    head = version.shows
    if head is None:
        return
    if knowledge.by_id(tx, head.id) or knowledge.by_identity(tx, head.directory, head.key):
        logger.info(
            "a file names an entry that another page shows; it is taken for an ordinary page",
            extra={"action": "knowledge_copy", "entry": id_text(head.id)},
        )
        return
    content = version.content[version.body_start :]
    number, said = head.version, _said(tx, head, content)
    if said is None:
        # Edited since memoryd wrote it.
        number = min(number + 1, limits.KNOWLEDGE_VERSION_MAX)
        said = Said(content=content, confidence=MANUAL_CONFIDENCE, origin=Origin.MANUAL)
    changes.add(
        tx,
        head.id,
        project_id=project.id,
        directory=head.directory,
        key=head.key,
        page_id=page_id,
        active_version=number,
        pinned=version.pinned,
        created_at=version.created_at,
    )
    changes.add_version(tx, head.id, number, said, actor=version.actor, at=version.created_at)


def add_past(tx: Transaction, page_id: bytes, past: Sequence[NewVersion]) -> None:
    """Earlier versions of an entry, as far as earlier texts of its file still are as memoryd wrote them."""
    entry = knowledge.by_page(tx, page_id) if past else None
    for version in past if entry is not None else ():
        head = version.shows
        said = _said(tx, head, version.content[version.body_start :]) if head else None
        if entry is None or head is None or said is None or head.id != entry.id:
            continue
        if knowledge.version(tx, entry.id, head.version) is None and head.version < entry.version:
            changes.add_version(tx, entry.id, head.version, said, actor=version.actor, at=version.created_at)


def _said(reading: Reading, head: Head, content: str) -> Said | None:
    """The version that a file holds; None where its text is not the one that memoryd wrote."""
    if not head.says(content):
        return None
    return Said(
        content=content,
        confidence=head.confidence,
        origin=head.origin,
        provenance=head.provenance,
        source_session_id=_known_session(reading, head.provenance.session_id if head.provenance else None),
    )


def buried_page(entry: Entry | None) -> bytes | None:
    """The deleted page that a new version of an entry brings back."""
    return entry.page_id if entry is not None and not entry.page_is_live else None

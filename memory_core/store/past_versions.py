"""Versions of a page that are older than the page's own row: put below it when the tables are rebuilt."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import bindparam, update

from memory_core.domain.page import PagePath
from memory_core.domain.project import Project
from memory_core.store import pages
from memory_core.store.pages import NewVersion, StoredPage
from memory_core.store.statement import Statement
from memory_core.store.tables import page_versions
from memory_core.store.tables import pages as pages_table
from memory_core.store.transaction import Transaction

_SUPERSEDED = Statement(
    update(page_versions)
    .where(page_versions.c.id == bindparam("old_id"))
    .values(superseded_at=bindparam("superseded"))
)
_AT_LAST = Statement(
    update(pages_table)
    .where(pages_table.c.id == bindparam("page_id"))
    .values(version_id=bindparam("last"), updated_at=bindparam("changed"))
)


def add_page_of(
    tx: Transaction, project: Project, path: PagePath, versions: Sequence[NewVersion]
) -> StoredPage | None:
    """A new page with these versions, oldest first, at the times that they say. Only the first is in the index: who calls
    this writes a version above them, which brings it up to date."""
    page_id, version_id = pages.add_page(tx, project, path, versions[0])
    for version in versions[1:]:
        older, version_id = version_id, tx.new_id()
        pages.add_version(tx, project, page_id, version_id, older, version)
        changed = version.created_at or tx.now
        tx.run(_SUPERSEDED, old_id=older, superseded=changed)
        tx.run(_AT_LAST, page_id=page_id, last=version_id, changed=changed)
    return pages.page_by_id(tx, page_id)

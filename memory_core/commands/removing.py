"""Taking a page away: hidden from everything, its file promised to go, its versions kept."""

from __future__ import annotations

from memory_core.domain.page import page_path
from memory_core.domain.project import Project
from memory_core.store import pages
from memory_core.store.audit import record
from memory_core.store.outbox import promise_file, state_of
from memory_core.store.transaction import Transaction
from memory_core.wiki.layout import file_of


def remove_page(tx: Transaction, project: Project, page: pages.StoredPage) -> None:
    """What the page shows (a piece of knowledge) is the caller's to keep in step."""
    pages.tombstone(tx, page)
    promise_file(
        tx,
        project.id,
        page_id=page.id,
        file=file_of(project, page_path(page.path)),
        found=state_of(page.sha256),
        version_id=None,
        sha256=None,
    )
    record(tx, "delete_page", project_id=project.id, page_id=page.id)

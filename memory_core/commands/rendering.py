"""Rendering the files that tell of a project as a whole: its index, and its log of a month."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable

from memory_core import limits
from memory_core.commands.pages import project_of, put_page
from memory_core.commands.versions import PageDraft
from memory_core.domain import rendered as texts
from memory_core.domain.page import page_path, short_hash
from memory_core.domain.project import Project
from memory_core.store import pages, rendered
from memory_core.store.outbox import Promise, promise_file, state_of
from memory_core.store.rendered import RenderedFile
from memory_core.store.transaction import Reading, Transaction
from memory_core.wiki.layout import project_directory

logger = logging.getLogger(__name__)

#: Of what somebody wrote into a rendered file: a page, with its heading.
EDIT_MAX_BYTES = limits.PAGE_BODY_MAX_BYTES - limits.KIB


def render_due(tx: Transaction, limit: int = 1) -> int:
    """Render files that are due and promise them; how many. A file that still says the same is promised as it is:
    where somebody deleted or edited it, it is put right."""
    due = rendered.due(tx, tx.now, limit)
    for file in due:
        project = project_of(tx, file.project_id)
        text = _text(tx, project, file.name)
        sha256 = hashlib.sha256(text.encode()).digest()
        rendered.rendered(tx, file.id, text, sha256)
        _promise(tx, project, file, sha256, found=state_of(file.sha256))
    return len(due)


def _text(reading: Transaction, project: Project, name: str) -> str:
    month = texts.month_of(name)
    if month is None:
        listed = rendered.listed(reading, project.id, reading.now)
        return texts.index_text(
            project.name, project.workspace, *listed, counts=rendered.counts(reading, project.id)
        )
    happened = rendered.happened(reading, project.id, *month, limit=limits.LOG_ROWS_MAX + 1)
    is_whole = len(happened) <= limits.LOG_ROWS_MAX
    return texts.log_text(name, happened[: limits.LOG_ROWS_MAX], is_whole=is_whole)


def content_of(reading: Reading, promise: Promise) -> bytes | None:
    """The bytes of a promised file that is rendered; None for a page's."""
    text = rendered.content_of(reading, promise.version_id) if promise.version_id else None
    return None if text is None else text.encode()


def keep_edit(tx: Transaction, promise: Promise, sha256: bytes, read: Callable[[], str]) -> bool:
    """Somebody's bytes lie where a rendered file is to be; False: that file is a page's.

    The file is rendered over, but what was written is not lost: unless it is an older rendering, its
    text (`read` gives it, redacted) becomes a page in `notes/`.
    """
    file = rendered.file_by_id(tx, promise.page_id)
    if file is None:
        return False
    project, text = project_of(tx, file.project_id), read()
    if not texts.is_untouched(text):
        _keep(tx, project, file, texts.without_mark(text))
    _promise(tx, project, file, promise.sha256, found=state_of(sha256))
    return True


def _keep(tx: Transaction, project: Project, file: RenderedFile, text: str) -> None:
    stem = file.name.removesuffix(".md")
    path = page_path(f"notes/written-into-{stem}-{short_hash(text)}.md")
    if not text.strip() or pages.page_at(tx, project.id, path.key) is not None:
        return
    kept = text.encode("utf-8", "replace")[:EDIT_MAX_BYTES].decode(errors="ignore")
    body = f"# Written into {file.name}\n\n{kept}"
    put_page(tx, project.id, PageDraft(path=path, body=body, cause="external"))
    logger.warning(
        "somebody wrote into a file that is rendered; the text is a page of its own now",
        extra={"action": "wiki_rendered_edit_kept", "file": promise_name(project, file), "page": path.path},
    )


def _promise(
    tx: Transaction, project: Project, file: RenderedFile, sha256: bytes | None, *, found: str
) -> None:
    promise_file(
        tx,
        project.id,
        page_id=file.id,
        file=promise_name(project, file),
        found=found,
        version_id=file.id,
        sha256=sha256,
    )


def promise_name(project: Project, file: RenderedFile) -> str:
    """A rendered file, relative to the wiki root."""
    return f"{project_directory(project)}/{file.name}"

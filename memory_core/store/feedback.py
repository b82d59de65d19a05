"""What was said of pages: rows of feedback, and the salience that they lead to."""

from __future__ import annotations

from sqlalchemy import bindparam, insert, or_, select

from memory_core.domain.feedback import FLAGS, Signal
from memory_core.store.pages import StoredPage
from memory_core.store.shown import is_shown
from memory_core.store.statement import Row, Statement
from memory_core.store.tables import page_feedback, page_versions, pages
from memory_core.store.transaction import Reading, Transaction

_f = page_feedback.c
_SALIENCE = Statement(select(pages.c.salience).where(pages.c.id == bindparam("id")))
_SET_SALIENCE = Statement(
    pages.update().where(pages.c.id == bindparam("page_id")).values(salience=bindparam("new_salience"))
)
_ADD = Statement(
    insert(page_feedback).values({column.name: bindparam(column.name) for column in page_feedback.c})
)
_FLAGGED = Statement(
    select(
        pages.c.id,
        pages.c.path,
        page_versions.c.title,
        _f.signal,
        _f.reason,
        _f.created_at,
    )
    # The version that was judged is still the newest: a rewrite answers what was said.
    .join_from(page_feedback, pages, (pages.c.id == _f.page_id) & (pages.c.version_id == _f.version_id))
    .join(page_versions, page_versions.c.id == pages.c.version_id)
    .where(
        _f.project_id == bindparam("project_id"),
        or_(*(_f.signal == str(signal) for signal in sorted(FLAGS))),
        is_shown(),
    )
    .order_by(_f.created_at.desc(), _f.id.desc())
    .limit(bindparam("limit"))
)


def salience(read: Reading, page_id: bytes) -> float | None:
    """How much a page counts, 0.25 to 2.0; None: never rated."""
    row = read.row(_SALIENCE, id=page_id)
    return None if row is None else row["salience"]


def add(tx: Transaction, page: StoredPage, signal: Signal, *, reason: str | None, salience: float) -> None:
    """Note a signal on the page's newest version, with the salience that the page has after it."""
    tx.run(
        _ADD,
        id=tx.new_id(),
        project_id=page.project_id,
        owner=tx.principal,
        token_scope=tx.token_scope,
        page_id=page.id,
        version_id=page.version_id,
        signal=str(signal),
        reason=reason,
        created_at=tx.now,
    )
    tx.run(_SET_SALIENCE, page_id=page.id, new_salience=salience)


def flagged(read: Reading, project_id: bytes, *, now: int, limit: int) -> list[Row]:
    """Signals that a page is stale or wrong, of pages that nobody wrote anew since and that are not expired, newest first:
    id, path, title, signal, reason, created_at."""
    return read.rows(_FLAGGED, project_id=project_id, now=now, limit=limit)

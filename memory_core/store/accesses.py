"""How often pages were come upon, by whom, and when last."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import BigInteger, ColumnElement, Text, bindparam, literal, select
from sqlalchemy.dialects.sqlite import insert

from memory_core.store.statement import Statement
from memory_core.store.tables import pages
from memory_core.store.tables_access import page_access
from memory_core.store.transaction import Transaction

_a = page_access.c
_PRINCIPAL: ColumnElement[str] = bindparam("principal", type_=Text())
_NOW: ColumnElement[int] = bindparam("now", type_=BigInteger())
_new = insert(page_access).from_select(
    ["page_id", "principal", "count", "last_at"],
    # From the table, so that a page that is gone by now is no error.
    select(pages.c.id, _PRINCIPAL, literal(1), _NOW).where(pages.c.id == bindparam("page_id")),
)
_COUNT_ONE = Statement(
    _new.on_conflict_do_update(
        index_elements=[_a.page_id, _a.principal],
        set_={"count": _a.count + 1, "last_at": _new.excluded.last_at},
        # The second: a clock that was set back must not stop the counting for good.
        where=(_a.last_at <= bindparam("before")) | (_a.last_at > bindparam("now")),
    )
)
_BUMP = Statement(
    pages.update()
    .where(pages.c.id == bindparam("of_page"))
    .values(access_count=pages.c.access_count + 1, last_accessed_at=bindparam("now"))
)


def count(tx: Transaction, page_ids: Sequence[bytes], *, throttle_us: int) -> int:
    """Count one access of each page by the transaction's principal, unless its last one is younger than `throttle_us`
    microseconds; how many were counted. Neither the page's date nor its index row changes."""
    counted = 0
    for page_id in page_ids:
        is_new = tx.run(
            _COUNT_ONE,
            page_id=page_id,
            principal=tx.principal,
            now=tx.now,
            before=tx.now - throttle_us,
        )
        if is_new:
            counted += tx.run(_BUMP, of_page=page_id, now=tx.now)
    return counted

"""Which pages anybody is shown: those that are neither deleted nor expired. The one place that says so in Core; takes `:now`."""

from __future__ import annotations

from sqlalchemy import ColumnElement, FromClause, and_, bindparam, or_

from memory_core.store.tables import pages


def is_shown(of: FromClause = pages) -> ColumnElement[bool]:
    """The clause for the table `pages` or an alias of it."""
    return and_(
        of.c.tombstoned_at.is_(None), or_(of.c.expires_at.is_(None), of.c.expires_at > bindparam("now"))
    )

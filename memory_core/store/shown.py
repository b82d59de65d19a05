"""Which pages anybody is shown, and of which projects: the one place that says so, for Core and for SQL as text."""

from __future__ import annotations

from sqlalchemy import ColumnElement, FromClause, and_, bindparam, or_

from memory_core.store.tables import pages

#: The table of the projects that are asked: `:projects` is a JSON array of their numbers, NULL: all.
SCOPE = """scope(id, number, name, workspace) AS MATERIALIZED (
    SELECT j.id, j.number, j.name, w.name FROM projects AS j JOIN workspaces AS w ON w.id = j.workspace_id
    WHERE :projects IS NULL OR j.number IN (SELECT value FROM json_each(:projects))
)"""


def shown(of: str = "p") -> str:
    """The clause for a table `pages` of that name: neither deleted nor, unless `:now` is NULL, expired."""
    return (
        f"{of}.tombstoned_at IS NULL AND (:now IS NULL OR {of}.expires_at IS NULL OR {of}.expires_at > :now)"
    )


def is_shown(of: FromClause = pages) -> ColumnElement[bool]:
    """The same for `pages` or an alias of it; takes `:now`."""
    return and_(
        of.c.tombstoned_at.is_(None), or_(of.c.expires_at.is_(None), of.c.expires_at > bindparam("now"))
    )

"""Sums of calls by day, and how often something was refused: small tables that answer at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import bindparam, delete, func, or_, select
from sqlalchemy.dialects.sqlite import insert

from memory_core.domain.budget import Activity, Spent
from memory_core.store.statement import Row, Statement, text_statement
from memory_core.store.tables import projects, workspaces
from memory_core.store.tables_models import model_refusals, model_usage
from memory_core.store.transaction import Reading, Transaction

_u, _r = model_usage.c, model_refusals.c
#: In place of a day: all that are long past.
_FOLDED = ""
_SUMS = ("calls", "failed", "lost", "unpriced", "input_tokens", "output_tokens", "cached_tokens", "money")

_SPENT = Statement(
    select(
        func.coalesce(func.sum(_u.calls), 0).label("calls"),
        func.coalesce(func.sum(_u.input_tokens + _u.output_tokens), 0).label("tokens"),
        func.coalesce(func.sum(_u.money), 0).label("money"),
    ).where(
        _u.day >= bindparam("first"),
        _u.day <= bindparam("last"),
        or_(bindparam("scope").is_(None), _u.scope == bindparam("scope")),
        or_(bindparam("kind").is_(None), _u.kind == bindparam("kind")),
    )
)
_LIST = Statement(
    select(model_usage, projects.c.name.label("project"), workspaces.c.name.label("workspace"))
    .outerjoin_from(model_usage, projects, projects.c.id == _u.scope)
    .outerjoin(workspaces, workspaces.c.id == projects.c.workspace_id)
    .where(
        _u.day >= bindparam("first"),
        _u.calls > 0,
        or_(bindparam("scope").is_(None), _u.scope == bindparam("scope")),
    )
    .order_by(_u.day.desc(), workspaces.c.name, projects.c.name, _u.kind, _u.provider, _u.model)
    .limit(bindparam("limit"))
)
_TOTALS = Statement(
    select(_u.kind, _u.provider, _u.model, *(func.sum(_u[name]).label(name) for name in _SUMS)).group_by(
        _u.kind, _u.provider, _u.model
    )
)
# Days before `before` become one row each of kind, project and model.
_FOLD = text_statement(
    f"""INSERT INTO model_usage (day, scope, kind, provider, model, {", ".join(_SUMS)})
SELECT '', scope, kind, provider, model, {", ".join(f"sum({name})" for name in _SUMS)} FROM model_usage
WHERE day < :before AND day <> '' GROUP BY scope, kind, provider, model
ON CONFLICT (day, scope, kind, provider, model) DO UPDATE SET
    {", ".join(f"{name} = {name} + excluded.{name}" for name in _SUMS)}"""
)
_DROP = Statement(delete(model_usage).where(_u.day < bindparam("before"), _u.day != _FOLDED))
_HAS_OLD = Statement(select(_u.day).where(_u.day < bindparam("before"), _u.day > _FOLDED).limit(1))
_refused = insert(model_refusals).values(
    day=bindparam("day"), kind=bindparam("kind"), reason=bindparam("reason"), count=1
)
_REFUSED = Statement(
    _refused.on_conflict_do_update(index_elements=[_r.day, _r.kind, _r.reason], set_={"count": _r.count + 1})
)
_REFUSALS = Statement(
    select(_r.kind, _r.reason, func.sum(_r.count).label("count"))
    .where(_r.day >= bindparam("first"))
    .group_by(_r.kind, _r.reason)
    .order_by(_r.kind, _r.reason)
)
# By project, so that the index over a project's last events is used.
_ACTIVITY = text_statement(
    """SELECT count(s.id) AS sessions, coalesce(sum(s.observation_count), 0) AS observations
FROM projects AS p JOIN sessions AS s ON s.project_id = p.id AND s.last_event_at >= :since
WHERE :scope IS NULL OR p.id = :scope"""
)


@dataclass(frozen=True, kw_only=True)
class Total:
    """Of a kind with a model, over all time."""

    kind: str
    provider: str
    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    money: int


def spent(
    read: Reading, first: str, last: str, *, scope: bytes | None = None, kind: str | None = None
) -> Spent:
    """What settled calls of those days used."""
    row = read.row(_SPENT, first=first, last=last, scope=scope, kind=kind)
    return Spent(calls=row["calls"], tokens=row["tokens"], money=row["money"]) if row else Spent()


def listed(read: Reading, first: str, *, scope: bytes | None = None, limit: int) -> list[Row]:
    """Rows from that day on, the newest first, with the names of their projects."""
    return read.rows(_LIST, first=first, scope=scope, limit=limit)


def totals(read: Reading) -> list[Total]:
    names = ("kind", "provider", "model", "calls", "input_tokens", "output_tokens", "cached_tokens", "money")
    return [Total(**{name: row[name] for name in names}) for row in read.rows(_TOTALS)]


def fold(tx: Transaction, *, before: str) -> int:
    """Make one row of the days before a day; how many there were."""
    if tx.row(_HAS_OLD, before=before) is None:
        return 0
    tx.run(_FOLD, before=before)
    return tx.run(_DROP, before=before)


def refused(tx: Transaction, *, day: str, kind: str, reason: str) -> None:
    """Count a call that was not granted, or a job that was left out."""
    tx.run(_REFUSED, day=day, kind=kind, reason=reason)


def refusals(read: Reading, first: str = _FOLDED) -> list[Row]:
    """Kind, reason and count, from that day on."""
    return read.rows(_REFUSALS, first=first)


def activity(read: Reading, since: int, *, scope: bytes | None = None) -> Activity:
    """Sessions with an event since a time, and the observations of these; of one project or of all."""
    row: Any = read.row(_ACTIVITY, since=since, scope=scope)
    return Activity(sessions=row["sessions"], observations=row["observations"])

"""The budget in force, what stops calls of models, and the jobs that wait for either."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
from sqlalchemy import bindparam, delete, or_, select
from sqlalchemy.dialects.sqlite import insert

from memory_core.domain.budget import Budget, Stop
from memory_core.domain.job import Job, Reason
from memory_core.store import job_claims
from memory_core.store.jobs import scope_of
from memory_core.store.statement import Row, Statement, text_statement
from memory_core.store.tables_jobs import jobs
from memory_core.store.tables_models import model_budget, model_pauses
from memory_core.store.transaction import Reading, Transaction

_b, _p, _j = model_budget.c, model_pauses.c, jobs.c
#: Of a pause: everywhere, every kind.
EVERYWHERE = b""
_ALL_KINDS = ""

_BUDGET = Statement(select(model_budget).where(_b.id == 1))
_new = insert(model_budget).values(
    id=1, budget=bindparam("budget"), changed_at=bindparam("now"), free_before=bindparam("now")
)
_SET = Statement(
    _new.on_conflict_do_update(
        index_elements=[_b.id],
        set_={name: _new.excluded[name] for name in ("budget", "changed_at", "free_before")},
    )
)
_FREE_BEFORE = Statement(model_budget.update().where(_b.id == 1).values(free_before=bindparam("time")))
_stop = insert(model_pauses).values({column.name: bindparam(column.name) for column in _p})
_STOP = Statement(
    _stop.on_conflict_do_update(
        index_elements=[_p.reason, _p.scope, _p.kind],
        set_={"until": _stop.excluded.until, "note": _stop.excluded.note},
    )
)
_STOPS = Statement(
    select(model_pauses)
    .where(or_(_p.until.is_(None), _p.until > bindparam("now")))
    .order_by(_p.since, _p.reason, _p.scope, _p.kind)
    .limit(bindparam("limit"))
)
_PAUSED = Statement(
    select(_p.since).where(
        _p.reason == Stop.PAUSED.value, or_(_p.until.is_(None), _p.until > bindparam("now"))
    )
)
_OF_JOB = Statement(
    select(_p.until, _p.reason).where(
        or_(_p.until.is_(None), _p.until > bindparam("now")),
        or_(
            (_p.scope == EVERYWHERE) & (_p.kind == _ALL_KINDS),
            (_p.scope == bindparam("scope")) & or_(_p.kind == _ALL_KINDS, _p.kind == bindparam("kind")),
        ),
    )
)
_LIFT = Statement(delete(model_pauses).where(_p.reason == bindparam("of_reason")))
_LIFT_BUDGET = Statement(delete(model_pauses).where(_p.reason != Stop.PAUSED.value))
_OVER = Statement(delete(model_pauses).where(_p.until.is_not(None), _p.until <= bindparam("now")))
_WAITING = Statement(
    select(_j.id, _j.queue, _j.project_id)
    .where(
        _j.not_before.is_not(None),
        _j.not_before > bindparam("now"),
        _j.waits_for == Reason.BUDGET.value,
        _j.updated_at <= bindparam("before"),
    )
    .limit(bindparam("slice"))
)
_COUNT_WAITING = text_statement(
    "SELECT count(*) AS count FROM (SELECT 1 FROM jobs WHERE not_before IS NOT NULL AND waits_for = 'budget' LIMIT :most)"
)


@dataclass(frozen=True, kw_only=True)
class InForce:
    """The stored budget; `free_before` as in the table."""

    budget: Budget
    text: str
    free_before: int | None


@dataclass(frozen=True, kw_only=True)
class Pause:
    """One thing that stops calls."""

    reason: Stop
    scope: bytes
    kind: str
    since: int
    until: int | None
    note: str
    set_by: str


def in_force(read: Reading) -> InForce:
    """The budget; the built-in one before any writer stored one."""
    row = read.row(_BUDGET)
    if row is None:
        return InForce(budget=Budget(), text="", free_before=None)
    budget = msgspec.json.decode(row["budget"], type=Budget)
    return InForce(budget=budget, text=row["budget"], free_before=row["free_before"])


def text_of(budget: Budget) -> str:
    """A budget as it is stored; equal ones are equal texts."""
    return msgspec.json.encode(budget, order="sorted").decode()


def put_in_force(tx: Transaction, budget: Budget) -> None:
    """Store another budget: what the old one stopped is looked at again."""
    tx.run(_SET, budget=text_of(budget), now=tx.now)
    tx.run(_LIFT_BUDGET)


def reopen(tx: Transaction) -> None:
    """Less is used than was thought: lift what the budget stopped and let who waits ask again. What still holds is noted then."""
    if tx.run(_LIFT_BUDGET):
        free(tx)


def stop(tx: Transaction, reason: Stop, *, scope: bytes, kind: str, until: int | None, note: str) -> None:
    """Note that calls are stopped, where and until when; `since` stays that of the first."""
    tx.run(
        _STOP,
        reason=reason.value,
        scope=scope if reason.is_of_project else EVERYWHERE,
        kind=kind if reason.is_of_kind else _ALL_KINDS,
        since=tx.now,
        until=until,
        note=note,
        set_by=tx.principal,
    )


def stops(read: Reading, now: int, limit: int = 100) -> list[Pause]:
    """What stops calls now, the oldest first."""
    return [_pause(row) for row in read.rows(_STOPS, now=now, limit=limit)]


def is_paused(read: Reading, now: int) -> bool:
    """By a person."""
    return read.row(_PAUSED, now=now) is not None


def lift(tx: Transaction, reason: Stop) -> bool:
    """End a stop everywhere; False when there was none."""
    return tx.run(_LIFT, of_reason=reason.value) > 0


def forget_over(tx: Transaction) -> int:
    """Drop stops whose time is over."""
    return tx.run(_OVER, now=tx.now)


def wait_until(read: Reading, job: Job, now: int) -> tuple[bool, int | None]:
    """Whether anything stops the calls of a job, and until when (UTC microseconds; None: until a person acts)."""
    rows = read.rows(_OF_JOB, now=now, scope=scope_of(job.project_id), kind=job.kind)
    times = [row["until"] for row in rows]
    return bool(times), None if None in times or not times else max(times)


def free(tx: Transaction) -> None:
    """Let all jobs that wait for the budget look again; the writer does it by and by (`free_some`)."""
    tx.run(_FREE_BEFORE, time=tx.now)


def free_some(tx: Transaction, before: int, slice_rows: int) -> int:
    """Make jobs due that wait for the budget since before a time; when none is left, that is noted. How many."""
    rows = tx.rows(_WAITING, now=tx.now, before=before, slice=slice_rows)
    for row in rows:
        job_claims.make_due(tx, row["id"], row["queue"], scope_of(row["project_id"]))
    if not rows:
        tx.run(_FREE_BEFORE, time=None)
    return len(rows)


def waiting(read: Reading, most: int) -> int:
    """Jobs that wait for the budget, counted up to `most`."""
    row: Any = read.row(_COUNT_WAITING, most=most)
    return row["count"]


def _pause(row: Row) -> Pause:
    values: dict[str, Any] = {column.name: row[column.name] for column in _p if column.name != "reason"}
    return Pause(reason=Stop(row["reason"]), **values)

"""Slots of schedules: which of them were made jobs of, and which projects had activity since."""

from __future__ import annotations

from typing import Final

from sqlalchemy import bindparam, func, select
from sqlalchemy.dialects import sqlite

from memory_core.store.jobs import scope_of
from memory_core.store.statement import Row, Statement, text_statement
from memory_core.store.tables_jobs import jobs, schedule_slots
from memory_core.store.transaction import Reading, Transaction

#: What the slot of a run that a person asked for begins with.
MANUAL: Final = "manual:"

_s = schedule_slots.c
_ONE = Statement(
    select(_s.job_id).where(
        _s.kind == bindparam("kind"), _s.scope == bindparam("scope"), _s.slot == bindparam("slot")
    )
)
_ANY = Statement(select(_s.kind).where(_s.kind == bindparam("kind"), _s.slot.not_like(f"{MANUAL}%")).limit(1))
_ADD = Statement(sqlite.insert(schedule_slots).on_conflict_do_nothing())
_NEWEST = Statement(
    select(
        _s.slot, _s.staged_at, jobs.c.id.label("job_id"), jobs.c.state, jobs.c.finished_at, jobs.c.last_error
    )
    .outerjoin_from(schedule_slots, jobs, jobs.c.id == _s.job_id)
    .where(_s.kind == bindparam("kind"), _s.job_id.is_not(None))
    .order_by(_s.staged_at.desc())
    .limit(1)
)
# A project is active when somebody worked in it or its pages changed since its last slot of this kind, or since the
# kind's first slot of all, which belongs to the install.
_ACTIVE = text_statement(
    """SELECT a.id AS id FROM (
    SELECT p.id AS id, p.number AS number, coalesce(
        (SELECT max(s.staged_at) FROM schedule_slots AS s WHERE s.kind = :kind AND s.scope = p.id),
        (SELECT min(s.staged_at) FROM schedule_slots AS s WHERE s.kind = :kind AND s.scope = x''), 0) AS since
    FROM projects AS p
    WHERE NOT EXISTS (SELECT 1 FROM schedule_slots AS s WHERE s.kind = :kind AND s.scope = p.id AND s.slot = :slot)
) AS a
WHERE EXISTS (SELECT 1 FROM sessions AS e WHERE e.project_id = a.id AND e.last_event_at > a.since)
OR EXISTS (SELECT 1 FROM pages AS g WHERE g.project_id = a.id AND g.tombstoned_at IS NULL AND g.updated_at > a.since)
ORDER BY a.number LIMIT :slice"""
)
# Of each schedule the newest stays, however old it is, as long as its project is there.
_OLD = text_statement(
    """SELECT s.kind AS kind, s.scope AS scope, s.slot AS slot, j.id AS job_id FROM schedule_slots AS s
LEFT JOIN jobs AS j ON j.id = s.job_id
WHERE s.staged_at < :before AND (j.id IS NULL OR j.finished_at IS NOT NULL)
AND (s.staged_at < (SELECT max(n.staged_at) FROM schedule_slots AS n WHERE n.kind = s.kind AND n.scope = s.scope)
    OR (s.scope <> x'' AND NOT EXISTS (SELECT 1 FROM projects AS p WHERE p.id = s.scope)))
ORDER BY s.staged_at LIMIT :slice"""
)
_FORGET = Statement(
    schedule_slots.delete().where(
        _s.kind == bindparam("of_kind"), _s.scope == bindparam("of_scope"), _s.slot == bindparam("of_slot")
    )
)
_USES = Statement(select(func.count().label("count")).where(_s.job_id == bindparam("job_id")))
_FORGET_JOB = Statement(jobs.delete().where(jobs.c.id == bindparam("of_job")))


def is_staged(read: Reading, *, kind: str, project_id: bytes | None, slot: str) -> bool:
    return read.row(_ONE, kind=kind, scope=scope_of(project_id), slot=slot) is not None


def is_known(read: Reading, kind: str) -> bool:
    """Whether any slot of that kind was ever seen, runs by hand left out."""
    return read.row(_ANY, kind=kind) is not None


def add(tx: Transaction, *, kind: str, project_id: bytes | None, slot: str, job_id: bytes | None) -> None:
    """Note that a slot was made a job of, or (None) that it was passed over."""
    tx.run(_ADD, kind=kind, scope=scope_of(project_id), slot=slot, job_id=job_id, staged_at=tx.now)


def newest(read: Reading, kind: str) -> Row | None:
    """Of the slot that was made a job of last: slot, staged_at, and of the job job_id, state, finished_at, last_error."""
    return read.row(_NEWEST, kind=kind)


def active_projects(read: Reading, *, kind: str, slot: str, limit: int) -> list[bytes]:
    """Projects that had activity since their last slot of this kind and have none for this slot yet."""
    return [row["id"] for row in read.rows(_ACTIVE, kind=kind, slot=slot, slice=limit)]


def purge(tx: Transaction, *, before: int, slice_rows: int) -> int:
    """Forget slots staged before a time, with the ended jobs that they made; of each schedule the newest stays. How many."""
    old = tx.rows(_OLD, before=before, slice=slice_rows)
    for row in old:
        tx.run(_FORGET, of_kind=row["kind"], of_scope=row["scope"], of_slot=row["slot"])
        if row["job_id"] is not None and tx.rows(_USES, job_id=row["job_id"])[0]["count"] == 0:
            tx.run(_FORGET_JOB, of_job=row["job_id"])
    return len(old)

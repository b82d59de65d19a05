"""Who gets which job next: round robin by project, pauses, leases that are over, queues that are paused.

A claim costs a few index look-ups, however many jobs wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import bindparam, delete, select
from sqlalchemy.dialects import sqlite

from memory_core.domain.job import Job
from memory_core.store.statement import Row, Statement, text_statement
from memory_core.store.tables_jobs import job_queues, jobs
from memory_core.store.transaction import Reading, Transaction

_j = jobs.c

# Written by hand: the partial index is used only where its condition stands in the same words.
_READY = text_statement(
    """SELECT t.scope AS scope,
    (SELECT j.id FROM jobs AS j INDEXED BY ix_jobs_ready WHERE j.queue = t.queue AND j.on_data_host = 0
        AND j.scope = t.scope AND j.state = 'pending' AND j.not_before IS NULL ORDER BY j.id LIMIT 1) AS anywhere,
    (SELECT j.id FROM jobs AS j INDEXED BY ix_jobs_ready WHERE :on_data_host AND j.queue = t.queue
        AND j.on_data_host = 1 AND j.scope = t.scope AND j.state = 'pending' AND j.not_before IS NULL
        ORDER BY j.id LIMIT 1) AS beside
FROM job_turns AS t INDEXED BY ix_job_turns_queue_turn
WHERE t.queue = :queue AND (anywhere IS NOT NULL OR beside IS NOT NULL)
ORDER BY t.turn LIMIT 1"""
)
_READY_OF_KIND = text_statement(
    """SELECT id FROM jobs INDEXED BY ix_jobs_queue_state_kind_id WHERE queue = :queue AND state = 'pending'
AND kind = :kind AND not_before IS NULL AND on_data_host <= :on_data_host ORDER BY id LIMIT 1"""
)
_LINE_UP = text_statement(
    """INSERT INTO job_turns (queue, scope, turn)
VALUES (:queue, :scope, 1 + coalesce((SELECT max(turn) FROM job_turns WHERE queue = :queue), 0))
ON CONFLICT DO NOTHING"""
)
_GO_BACK = text_statement(
    """UPDATE job_turns SET turn = 1 + (SELECT max(turn) FROM job_turns WHERE queue = :queue)
WHERE queue = :queue AND scope = :scope"""
)
_FORGET_TURNS = text_statement(
    """DELETE FROM job_turns WHERE (queue, scope) IN (
    SELECT t.queue, t.scope FROM job_turns AS t WHERE NOT EXISTS (
        SELECT 1 FROM jobs AS j INDEXED BY ix_jobs_ready WHERE j.queue = t.queue AND j.on_data_host IN (0, 1)
        AND j.scope = t.scope AND j.state = 'pending' AND j.not_before IS NULL)
    LIMIT :slice)"""
)
_DUE = Statement(
    select(_j.id, _j.queue, _j.scope)
    .where(_j.not_before.is_not(None), _j.not_before <= bindparam("now"))
    .order_by(_j.not_before)
    .limit(bindparam("slice"))
)
_WAKE = Statement(jobs.update().where(_j.id == bindparam("job_id")).values(not_before=None, waits_for=None))
_EXPIRED = Statement(
    select(_j.id)
    .where(_j.lease_until.is_not(None), _j.lease_until <= bindparam("now"))
    .order_by(_j.lease_until)
    .limit(bindparam("slice"))
)
_LEASES = Statement(jobs.update().where(_j.lease_until.is_not(None)).values(lease_until=bindparam("until")))
_LONG_LEASES = Statement(
    jobs.update()
    .where(_j.lease_until.is_not(None), _j.lease_until > bindparam("until"))
    .values(lease_until=bindparam("until"))
)
_PAUSES = Statement(
    jobs.update()
    .where(_j.not_before.is_not(None), _j.not_before > bindparam("latest"))
    .values(not_before=bindparam("latest"))
)
_PAUSE = Statement(sqlite.insert(job_queues).on_conflict_do_nothing())
_RESUME = Statement(delete(job_queues).where(job_queues.c.queue == bindparam("of_queue")))
_PAUSED = Statement(select(job_queues).order_by(job_queues.c.queue))


def queue_up(tx: Transaction, job: Job) -> None:
    """The project of a job that is due takes its turn in the queue, at the end if it is new there; the queue is rung."""
    if job.not_before is None:
        _line_up(tx, job.queue, job.project_id or b"")


def next_ready(read: Reading, queue: str, *, on_data_host: bool, kind: str = "") -> bytes | None:
    """The oldest due job of the project whose turn it is, paused queue or not; None where nothing is due.

    With a `kind` the oldest due one of that kind, whosever turn it is.
    """
    if kind:
        row = read.row(_READY_OF_KIND, queue=queue, kind=kind, on_data_host=int(on_data_host))
        return None if row is None else row["id"]
    row = read.row(_READY, queue=queue, on_data_host=int(on_data_host))
    return None if row is None else min(found for found in (row["anywhere"], row["beside"]) if found)


def took_turn(tx: Transaction, job: Job) -> None:
    """The project of a claimed job goes to the end of the line."""
    tx.run(_GO_BACK, queue=job.queue, scope=job.project_id or b"")


def forget_turns(tx: Transaction, slice_rows: int) -> int:
    """Take projects out of the line that have no job due; how many."""
    return tx.run(_FORGET_TURNS, slice=slice_rows)


def wake(tx: Transaction, slice_rows: int) -> int:
    """Make waiting jobs due whose pause is over, and ring their queues; how many."""
    due = tx.rows(_DUE, now=tx.now, slice=slice_rows)
    for row in due:
        make_due(tx, row["id"], row["queue"], row["scope"])
    return len(due)


def make_due(tx: Transaction, job_id: bytes, queue: str, scope: bytes) -> None:
    """End a waiting job's pause."""
    tx.run(_WAKE, job_id=job_id)
    _line_up(tx, queue, scope)


def expired(read: Reading, now: int, slice_rows: int) -> list[bytes]:
    """Running jobs whose lease is over, the longest first."""
    return [row["id"] for row in read.rows(_EXPIRED, now=now, slice=slice_rows)]


def begin_leases_anew(tx: Transaction, until: int) -> int:
    """All leases last until a time (UTC microseconds); how many."""
    return tx.run(_LEASES, until=until)


def shorten(tx: Transaction, *, lease_until: int, not_before: int) -> int:
    """No lease and no pause lasts longer than until these times (UTC microseconds); how many rows."""
    return tx.run(_LONG_LEASES, until=lease_until) + tx.run(_PAUSES, latest=not_before)


def pause(tx: Transaction, queue: str) -> bool:
    """Let a queue give no job; False when it gave none before."""
    return tx.run(_PAUSE, queue=queue, paused_at=tx.now, paused_by=tx.principal) > 0


def resume(tx: Transaction, queue: str) -> bool:
    """Let a paused queue go on, and ring it; False when it was not paused."""
    tx.rings.add(queue)
    return tx.run(_RESUME, of_queue=queue) > 0


def paused(read: Reading) -> dict[str, Row]:
    """The paused queues: `paused_at` and `paused_by` of each."""
    return {row["queue"]: row for row in read.rows(_PAUSED)}


def open_queues(read: Reading, queues: Sequence[str]) -> list[str]:
    """Those that are not paused, in their order."""
    stopped: dict[str, Any] = paused(read)
    return [queue for queue in queues if queue not in stopped]


def _line_up(tx: Transaction, queue: str, scope: bytes) -> None:
    tx.run(_LINE_UP, queue=queue, scope=scope)
    tx.rings.add(queue)

"""How many jobs there are and what became of them, without counting rows: triggers keep the counts as jobs change."""

from __future__ import annotations

from dataclasses import dataclass

from memory_core import limits
from memory_core.domain.job import State
from memory_core.store.jobs import Listed, made_at, named
from memory_core.store.statement import text_statement
from memory_core.store.transaction import Reading

#: What the counts call a counted failure; every other event is that a job came into a state.
FAILURE = "failure"

_PRESENT = text_statement(
    """SELECT c.queue AS queue, c.kind AS kind, c.event AS state, c.present AS count,
    (SELECT min(j.id) FROM jobs AS j WHERE j.queue = c.queue AND j.state = c.event AND j.kind = c.kind) AS oldest
FROM job_counts AS c WHERE c.present > 0 ORDER BY c.queue, c.kind, c.event"""
)
_TOTALS = text_statement("SELECT queue, kind, event, total FROM job_counts ORDER BY queue, kind, event")
# Written by hand: a partial index is used only where its condition stands in the same words.
_DUE = text_statement(
    """SELECT queue, count(*) AS count, min(id) AS oldest FROM jobs INDEXED BY ix_jobs_ready
WHERE state = 'pending' AND not_before IS NULL GROUP BY queue"""
)
_TOOK = text_statement(
    """SELECT avg(finished_at - claimed_at) AS took FROM (
    SELECT finished_at, claimed_at FROM jobs INDEXED BY ix_jobs_queue_state_kind_id
    WHERE queue = :queue AND state = 'completed' AND kind = :kind ORDER BY id DESC LIMIT :last)"""
)
_FAILED = text_statement(
    """SELECT j.*, p.name AS project, w.name AS workspace FROM jobs AS j INDEXED BY ix_jobs_failed
LEFT JOIN projects AS p ON p.id = j.project_id LEFT JOIN workspaces AS w ON w.id = p.workspace_id
WHERE j.state = 'failed' AND j.finished_at >= :since ORDER BY j.finished_at DESC LIMIT :limit"""
)


@dataclass(frozen=True, kw_only=True)
class Count:
    """How many jobs of a kind are in a state now, and when the oldest of them was made (UTC microseconds)."""

    queue: str
    kind: str
    state: State
    count: int
    oldest_at: int


@dataclass(frozen=True, kw_only=True)
class Total:
    """How often something happened to jobs of a kind since the database was made; `event` is a state or `FAILURE`."""

    queue: str
    kind: str
    event: str
    count: int


@dataclass(frozen=True, kw_only=True)
class Due:
    """Jobs of a queue that a worker could have now, and when the oldest of them was made (UTC microseconds)."""

    count: int
    oldest_at: int


def present(read: Reading) -> list[Count]:
    """Of each queue, kind and state that there is: a few index look-ups, however many jobs there are."""
    return [
        Count(
            queue=row["queue"],
            kind=row["kind"],
            state=State(row["state"]),
            count=row["count"],
            oldest_at=made_at(row["oldest"]),
        )
        for row in read.rows(_PRESENT)
    ]


def totals(read: Reading) -> list[Total]:
    return [
        Total(queue=row["queue"], kind=row["kind"], event=row["event"], count=row["total"])
        for row in read.rows(_TOTALS)
    ]


def usual_us(read: Reading, queue: str, kind: str) -> float | None:
    """How long a job of that kind runs: the mean of the last ones that completed, microseconds; None before the first."""
    row = read.row(_TOOK, queue=queue, kind=kind, last=limits.JOBS_TIMED)
    return None if row is None else row["took"]


def due(read: Reading) -> dict[str, Due]:
    """By queue, paused or not. Looks at each job that is due, and at no other."""
    return {
        row["queue"]: Due(count=row["count"], oldest_at=made_at(row["oldest"])) for row in read.rows(_DUE)
    }


def failed_since(read: Reading, since: int, limit: int) -> list[Listed]:
    """Jobs that failed for good since a time and still are failed, the last one first."""
    return [named(row) for row in read.rows(_FAILED, since=since, limit=limit)]

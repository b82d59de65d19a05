"""Compactions and distillations as rows: what each was made of, what came of it, and how large a session's events are."""

from __future__ import annotations

from typing import Any

from sqlalchemy import bindparam, func, or_, select
from sqlalchemy.dialects.sqlite import insert

from memory_core.domain.compaction import EventSize
from memory_core.store import jobs as job_rows
from memory_core.store.jobs import Listed
from memory_core.store.statement import Row, Statement
from memory_core.store.tables import projects, workspaces
from memory_core.store.tables_durable import compactions, distillations, session_events
from memory_core.store.tables_jobs import jobs
from memory_core.store.transaction import Reading, Transaction

_c, _d, _e, _j = compactions.c, distillations.c, session_events.c, jobs.c
_ADD = Statement(
    insert(compactions).values(
        {
            column.name: bindparam(column.name)
            for column in compactions.c
            if column.name not in ("summary_event_id", "made_by", "completed_at")
        }
    )
)
_ONE = Statement(select(compactions).where(_c.job_id == bindparam("job_id")))
_AT = Statement(
    select(compactions).where(
        _c.session_id == bindparam("session_id"), _c.through_sequence == bindparam("through_sequence")
    )
)
_UNFINISHED = Statement(
    select(compactions)
    .join_from(compactions, jobs, _j.id == _c.job_id)
    .where(_c.session_id == bindparam("session_id"), or_(_j.state == "pending", _j.state == "running"))
    .order_by(_c.through_sequence)
    .limit(1)
)
_COMPLETE = Statement(
    compactions.update()
    .where(_c.job_id == bindparam("of_job"))
    .values(
        summary_event_id=bindparam("new_event"), made_by=bindparam("new_maker"), completed_at=bindparam("now")
    )
)
_LISTED = Statement(
    select(
        jobs,
        projects.c.name.label("project"),
        workspaces.c.name.label("workspace"),
        _c.through_sequence,
        _c.sha256,
        _c.made_by,
        _c.completed_at,
        _e.sequence.label("summary_sequence"),
    )
    .join_from(compactions, jobs, _j.id == _c.job_id)
    .outerjoin(session_events, _e.id == _c.summary_event_id)
    .outerjoin(projects, projects.c.id == _j.project_id)
    .outerjoin(workspaces, workspaces.c.id == projects.c.workspace_id)
    .where(_c.session_id == bindparam("session_id"), _c.through_sequence < bindparam("before"))
    .order_by(_c.through_sequence.desc())
    .limit(bindparam("limit"))
)
#: The size of a payload is known from the row's head, without reading it.
_SIZES = Statement(
    select(
        _e.sequence, _e.turn_id, _e.turn_index, _e.turn_size, func.octet_length(_e.payload_json).label("size")
    )
    .where(
        _e.session_id == bindparam("session_id"),
        _e.sequence > bindparam("after"),
        _e.sequence <= bindparam("through"),
    )
    .order_by(_e.sequence)
    .limit(bindparam("limit"))
)
_DISTILLATION = Statement(select(distillations).where(_d.job_id == bindparam("job_id")))
_DISTILLED = Statement(
    distillations.update()
    .where(_d.job_id == bindparam("of_job"))
    .values(made_by=bindparam("new_maker"), completed_at=bindparam("now"))
)
_END = 2**62


def add(tx: Transaction, **columns: Any) -> None:
    """What the job is made of: job_id, session_id, through_sequence, event_count, first_event_id, last_event_id, sha256."""
    tx.run(_ADD, created_at=tx.now, **columns)


def one(read: Reading, job_id: bytes) -> Row | None:
    return read.row(_ONE, job_id=job_id)


def at_boundary(read: Reading, session_id: bytes, through_sequence: int) -> Row | None:
    """The compaction up to that event, in whatever state."""
    return read.row(_AT, session_id=session_id, through_sequence=through_sequence)


def unfinished(read: Reading, session_id: bytes) -> Row | None:
    """The compaction of a session that waits or runs."""
    return read.row(_UNFINISHED, session_id=session_id)


def complete(tx: Transaction, job_id: bytes, *, summary_event_id: bytes, made_by: str) -> None:
    tx.run(_COMPLETE, of_job=job_id, new_event=summary_event_id, new_maker=made_by, now=tx.now)


def listed(
    read: Reading, session_id: bytes, *, before: int | None = None, limit: int = 50
) -> list[tuple[Listed, Row]]:
    """A session's compactions, the one that covers most first: each job, and `through_sequence`, `sha256`, `made_by`,
    `completed_at`, `summary_sequence`."""
    rows = read.rows(_LISTED, session_id=session_id, before=before or _END, limit=limit)
    return [(job_rows.named(row), row) for row in rows]


def sizes(read: Reading, session_id: bytes, *, after: int, through: int, limit: int) -> list[EventSize]:
    """Of the first `limit` events with `after` < sequence ≤ `through`, what a plan needs of each."""
    return [
        EventSize(
            sequence=row["sequence"],
            turn_id=row["turn_id"],
            turn_index=row["turn_index"],
            turn_size=row["turn_size"],
            size_bytes=row["size"],
        )
        for row in read.rows(_SIZES, session_id=session_id, after=after, through=through, limit=limit)
    ]


def distillation(read: Reading, job_id: bytes) -> Row | None:
    return read.row(_DISTILLATION, job_id=job_id)


def complete_distillation(tx: Transaction, job_id: bytes, *, made_by: str) -> None:
    tx.run(_DISTILLED, of_job=job_id, new_maker=made_by, now=tx.now)

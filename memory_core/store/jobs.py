"""Jobs as rows: made once for each fact, read, written back whole, and listed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Select, bindparam, func, or_, select
from sqlalchemy.dialects.sqlite import insert

from memory_core.domain.job import Job, State, as_json
from memory_core.store import job_claims
from memory_core.store.statement import Row, Statement, text_statement
from memory_core.store.tables import projects, workspaces
from memory_core.store.tables_jobs import jobs
from memory_core.store.transaction import Reading, Transaction

#: The scope of what concerns the whole install.
INSTALL: Final = b""

_j = jobs.c
_ONE = Statement(select(jobs).where(_j.id == bindparam("id")))
_SAME = Statement(
    select(_j.id).where(
        _j.kind == bindparam("kind"),
        _j.scope == bindparam("scope"),
        _j.subject == bindparam("subject"),
        _j.source_digest == bindparam("source_digest"),
    )
)
_ADD = Statement(insert(jobs).values({column.name: bindparam(column.name) for column in jobs.c}))
_IDENTITY = (
    "id",
    "kind",
    "queue",
    "project_id",
    "scope",
    "subject",
    "source_digest",
    "on_data_host",
    "principal",
    "token_scope",
    "created_at",
)
#: What a step changes.
_CHANGING = tuple(column.name for column in jobs.c if column.name not in _IDENTITY)
_SAVE = Statement(
    jobs.update()
    .where(_j.id == bindparam("job_id"))
    .values({name: bindparam(f"new_{name}") for name in _CHANGING})
)
_PENDING = Statement(
    select(_j.id)
    .where(
        _j.queue == bindparam("queue"),
        _j.state == "pending",
        _j.kind == bindparam("kind"),
        _j.scope == bindparam("scope"),
        _j.subject == bindparam("subject"),
    )
    .order_by(_j.id)
    .limit(1)
)
_LATE = Statement(
    select(_j.queue, func.count().label("count"))
    .where(_j.lease_until.is_not(None), _j.lease_until <= bindparam("now"))
    .group_by(_j.queue)
)
_NAMES = Statement(
    select(projects.c.name.label("project"), workspaces.c.name.label("workspace"))
    .join_from(projects, workspaces, workspaces.c.id == projects.c.workspace_id)
    .where(projects.c.id == bindparam("id"))
)
_FORGET_ENDED = text_statement(
    "DELETE FROM jobs WHERE id IN (SELECT id FROM jobs AS j WHERE j.kind = :kind AND j.finished_at IS NOT NULL"
    " AND NOT EXISTS (SELECT 1 FROM schedule_slots AS s WHERE s.job_id = j.id) ORDER BY j.id DESC LIMIT -1 OFFSET :kept)"
)
#: Behind every id that there can be.
_LAST_ID = b"\xff" * 16


def _listing(*conditions: ColumnElement[bool]) -> Select[Any]:
    return (
        select(jobs, projects.c.name.label("project"), workspaces.c.name.label("workspace"))
        .outerjoin_from(jobs, projects, projects.c.id == _j.project_id)
        .outerjoin(workspaces, workspaces.c.id == projects.c.workspace_id)
        .where(
            _j.id < bindparam("before"),
            or_(bindparam("kind").is_(None), _j.kind == bindparam("kind")),
            or_(bindparam("queue").is_(None), _j.queue == bindparam("queue")),
            *conditions,
        )
        .order_by(_j.id.desc())
        .limit(bindparam("limit"))
    )


_OF_STATE = _j.state == bindparam("state")
_OF_PROJECT = _j.project_id == bindparam("project_id")
#: By the narrowest thing that is asked for.
_LIST = {
    (False, False): Statement(_listing()),
    (True, False): Statement(_listing(_OF_STATE)),
    (False, True): Statement(_listing(_OF_PROJECT)),
    (True, True): Statement(_listing(_OF_STATE, _OF_PROJECT)),
}


@dataclass(frozen=True, kw_only=True)
class Listed:
    """A job, with the names of its project (None: the whole install)."""

    job: Job
    workspace: str | None
    project: str | None


def one(read: Reading, job_id: bytes) -> Job | None:
    row = read.row(_ONE, id=job_id)
    return None if row is None else _job(row)


def add(tx: Transaction, job: Job) -> tuple[bytes, bool]:
    """Store a pending job and ring its queue, or find the one of the same kind, project, subject and source, in whatever
    state it is; its id, and whether it is new."""
    known = same(tx, job)
    if known is not None:
        return known, False
    tx.run(_ADD, **columns_of(job))
    job_claims.queue_up(tx, job)
    return job.id, True


def columns_of(job: Job) -> dict[str, Any]:
    """Every column of a job's row."""
    fixed = {name: getattr(job, name) for name in _IDENTITY if name not in ("scope", "on_data_host")}
    return {
        **fixed,
        "scope": scope_of(job.project_id),
        "on_data_host": int(job.on_data_host),
        **_changing(job),
    }


def same(read: Reading, job: Job) -> bytes | None:
    """The stored job of the same kind, project, subject and source, in whatever state."""
    scope = scope_of(job.project_id)
    row = read.row(_SAME, kind=job.kind, scope=scope, subject=job.subject, source_digest=job.source_digest)
    return None if row is None else row["id"]


def save(tx: Transaction, job: Job) -> Job:
    """Write what a step changed; a job that is due again takes its turn, and its queue is rung. Returns it."""
    tx.run(_SAVE, job_id=job.id, **{f"new_{name}": value for name, value in _changing(job).items()})
    if job.state is State.PENDING:
        job_claims.queue_up(tx, job)
    return job


def pending_like(
    read: Reading, *, queue: str, kind: str, project_id: bytes | None, subject: str = ""
) -> bytes | None:
    """The oldest pending job of a kind about the same thing, whatever its source."""
    row = read.row(_PENDING, queue=queue, kind=kind, scope=scope_of(project_id), subject=subject)
    return None if row is None else row["id"]


def listed(
    read: Reading,
    *,
    state: State | None = None,
    kind: str | None = None,
    queue: str | None = None,
    project_id: bytes | None = None,
    before: bytes | None = None,
    limit: int = 50,
) -> list[Listed]:
    """The newest first; `before` (an id) continues a list."""
    wanted: dict[str, Any] = {"kind": kind, "queue": queue, "limit": limit, "before": before or _LAST_ID}
    if state is not None:
        wanted["state"] = state.value
    if project_id is not None:
        wanted["project_id"] = project_id
    rows = read.rows(_LIST[state is not None, project_id is not None], **wanted)
    return [named(row) for row in rows]


def with_names(read: Reading, job: Job) -> Listed:
    """A job with the names of its project."""
    row = None if job.project_id is None else read.row(_NAMES, id=job.project_id)
    return Listed(
        job=job,
        workspace=row["workspace"] if row is not None else None,
        project=row["project"] if row is not None else None,
    )


def named(row: Row) -> Listed:
    """A row of jobs that was joined with the names of its project."""
    return Listed(job=_job(row), workspace=row["workspace"], project=row["project"])


def forget_ended(tx: Transaction, kind: str, *, kept: int) -> int:
    """Of a kind that is made again and again, forget the ended jobs but the newest; those of schedules go with their slots."""
    return tx.run(_FORGET_ENDED, kind=kind, kept=kept)


def past_lease(read: Reading, now: int) -> Mapping[str, int]:
    """Of each queue, how many running jobs are past their lease."""
    return {row["queue"]: row["count"] for row in read.rows(_LATE, now=now)}


def scope_of(project_id: bytes | None) -> bytes:
    return INSTALL if project_id is None else project_id


def made_at(job_id: bytes) -> int:
    """When an id was made, UTC microseconds (RFC 9562: the first 48 bits are milliseconds)."""
    return int.from_bytes(job_id[:6], "big") * 1_000


def _changing(job: Job) -> dict[str, Any]:
    values: dict[str, Any] = {name: getattr(job, name) for name in _CHANGING}
    return values | {
        "state": job.state.value,
        "cursor": None if job.cursor is None else as_json(job.cursor),
        "result": None if job.result is None else as_json(job.result),
    }


def _job(row: Row) -> Job:
    values = {column.name: row[column.name] for column in jobs.c if column.name != "scope"}
    for name in ("cursor", "result"):
        values[name] = None if values[name] is None else json.loads(values[name])
    values["state"] = State(values["state"])
    values["on_data_host"] = bool(values["on_data_host"])
    return Job(**values)

"""What was brought in from another program's database, and rows that only an import writes: with the ids and times of their own."""

from __future__ import annotations

from typing import Any

from sqlalchemy import bindparam, func, select
from sqlalchemy.dialects.sqlite import insert

from memory_core.domain.job import Job
from memory_core.store import job_claims, jobs
from memory_core.store.statement import Row, Statement
from memory_core.store.tables import sessions
from memory_core.store.tables_durable import (
    compactions,
    distillation_results,
    distillations,
    durable_sessions,
    session_events,
    session_snapshots,
)
from memory_core.store.tables_imports import imports
from memory_core.store.tables_jobs import jobs as job_table
from memory_core.store.tables_knowledge import knowledge, knowledge_tombstones, knowledge_versions
from memory_core.store.transaction import Reading, Transaction

SESSION, KNOWLEDGE = "session", "knowledge"
_i, _d, _s, _k = imports.c, durable_sessions.c, sessions.c, knowledge.c


def _new(table: Any) -> Statement:
    """One row of every column, unless it is there."""
    columns: dict[str, Any] = {column.name: bindparam(column.name) for column in table.c}
    return Statement(insert(table).values(columns).on_conflict_do_nothing())


_ONE = Statement(
    select(imports).where(
        _i.source == bindparam("source"), _i.kind == bindparam("kind"), _i.id == bindparam("id")
    )
)
_BEGIN = Statement(
    insert(imports)
    .values({column.name: bindparam(column.name) for column in imports.c})
    .on_conflict_do_update(
        index_elements=["source", "kind", "id"],
        set_={"finished_at": None, "principal": bindparam("principal")},
    )
)
_FINISH = Statement(
    imports.update()
    .where(_i.source == bindparam("of_source"), _i.kind == bindparam("of_kind"), _i.id == bindparam("of_id"))
    .values(through=bindparam("new_through"), finished_at=bindparam("now"))
)
_FORGET = Statement(
    imports.delete().where(
        _i.source == bindparam("source"), _i.kind == bindparam("kind"), _i.id == bindparam("id")
    )
)
_SESSION = Statement(
    select(_s.owner, _d.last_sequence, _d.deleted_at, _d.session_id.label("durable_id"))
    .outerjoin_from(sessions, durable_sessions, _d.session_id == _s.id)
    .where(_s.id == bindparam("id"))
)
_HOLD = Statement(
    durable_sessions.update()
    .where(_d.session_id == bindparam("id"))
    .values(lease_hash=bindparam("new_hash"), lease_until=bindparam("new_until"), has_replayed=0)
)
_PUBLISH = Statement(
    durable_sessions.update()
    .where(_d.session_id == bindparam("id"))
    .values(
        last_sequence=bindparam("new_sequence"),
        digest=bindparam("new_digest"),
        lease_hash=None,
        lease_until=None,
        has_replayed=0,
        updated_at=func.max(_d.updated_at, bindparam("now")),
    )
)
_TELL = Statement(
    sessions.update()
    .where(_s.id == bindparam("id"))
    .values(
        substance_count=_s.substance_count + bindparam("more"),
        last_event_at=func.max(_s.last_event_at, bindparam("last_at")),
        ended_at=func.max(_s.last_event_at, bindparam("last_at")),
    )
)
_AT = Statement(
    select(session_events.c.id, session_events.c.digest).where(
        session_events.c.session_id == bindparam("session_id"),
        session_events.c.sequence == bindparam("sequence"),
    )
)
_LAST = Statement(
    select(func.coalesce(func.max(session_events.c.sequence), 0).label("last")).where(
        session_events.c.session_id == bindparam("session_id")
    )
)
_EVENT = Statement(
    select(session_events.c.session_id, session_events.c.kind).where(session_events.c.id == bindparam("id"))
)
_TURN = Statement(
    select(session_events.c.id).where(
        session_events.c.session_id == bindparam("session_id"),
        session_events.c.turn_id == bindparam("turn_id"),
        session_events.c.turn_index == 0,
    )
)
_JOB = Statement(select(job_table.c.id).where(job_table.c.id == bindparam("id")))
_ENTRY = Statement(select(_k.id).where(_k.id == bindparam("id")))
_ADD_SNAPSHOT, _ADD_JOB = _new(session_snapshots), _new(job_table)
_ADD_COMPACTION, _ADD_DISTILLATION = _new(compactions), _new(distillations)
_ADD_RESULT, _ADD_VERSION = _new(distillation_results), _new(knowledge_versions)
_ADD_ENTRY = _new(knowledge)
_ADD_TOMBSTONE = _new(knowledge_tombstones)


# --- the ledger ---


def one(read: Reading, source: str, kind: str, row_id: bytes) -> Row | None:
    """What is known of an import: `through`, `finished_at`, `principal`."""
    return read.row(_ONE, source=source, kind=kind, id=row_id)


def begin(tx: Transaction, source: str, kind: str, row_id: bytes) -> None:
    """It comes from now on, anew or with more than before."""
    tx.run(
        _BEGIN,
        source=source,
        kind=kind,
        id=row_id,
        principal=tx.principal,
        through=0,
        created_at=tx.now,
        finished_at=None,
    )


def finish(tx: Transaction, source: str, kind: str, row_id: bytes, through: int) -> None:
    """All of it is here."""
    tx.run(_FINISH, of_source=source, of_kind=kind, of_id=row_id, new_through=through, now=tx.now)


def forget(tx: Transaction, source: str, kind: str, row_id: bytes) -> None:
    """As if it had never begun."""
    tx.run(_FORGET, source=source, kind=kind, id=row_id)


# --- sessions ---


def session(read: Reading, session_id: bytes) -> Row | None:
    """`owner`, `durable_id` (None: it is no durable one), `last_sequence`, `deleted_at`; None where the id is nobody's."""
    return read.row(_SESSION, id=session_id)


def hold(tx: Transaction, session_id: bytes, lease_hash: bytes, until: int) -> None:
    tx.run(_HOLD, id=session_id, new_hash=lease_hash, new_until=until)


def publish(
    tx: Transaction, session_id: bytes, *, last_sequence: int, digest: bytes, substance: int, last_at: int
) -> None:
    """Move the head over what was staged, give the lease back, and tell the session's line in lists."""
    tx.run(_PUBLISH, id=session_id, new_sequence=last_sequence, new_digest=digest, now=tx.now)
    tx.run(_TELL, id=session_id, more=substance, last_at=last_at)


def event_at(read: Reading, session_id: bytes, sequence: int) -> Row | None:
    """`id` and `digest` of an event, staged or published."""
    return read.row(_AT, session_id=session_id, sequence=sequence)


def last_sequence(read: Reading, session_id: bytes) -> int:
    """Of the last event, staged or published; 0 where there is none."""
    return read.rows(_LAST, session_id=session_id)[0]["last"]


def event(read: Reading, event_id: bytes) -> Row | None:
    """`session_id` and `kind` of an event of whatever session, staged or published."""
    return read.row(_EVENT, id=event_id)


def has_turn(read: Reading, session_id: bytes, turn_id: bytes) -> bool:
    return read.row(_TURN, session_id=session_id, turn_id=turn_id) is not None


def add_snapshot(tx: Transaction, **columns: Any) -> None:
    tx.run(_ADD_SNAPSHOT, **columns)


# --- jobs ---


def has_job(read: Reading, job_id: bytes) -> bool:
    return read.row(_JOB, id=job_id) is not None


def add_job(tx: Transaction, job: Job) -> None:
    """A job in whatever state; one that is pending is queued up."""
    tx.run(_ADD_JOB, **jobs.columns_of(job))
    if job.finished_at is None:
        job_claims.queue_up(tx, job)


def add_compaction(tx: Transaction, **columns: Any) -> None:
    tx.run(_ADD_COMPACTION, **columns)


def add_distillation(tx: Transaction, **columns: Any) -> None:
    tx.run(_ADD_DISTILLATION, **columns)


def add_result(tx: Transaction, **columns: Any) -> None:
    tx.run(_ADD_RESULT, **columns)


# --- knowledge ---


def has_entry(read: Reading, entry_id: bytes) -> bool:
    return read.row(_ENTRY, id=entry_id) is not None


def add_entry(tx: Transaction, **columns: Any) -> None:
    tx.run(_ADD_ENTRY, **columns)


def add_version(tx: Transaction, **columns: Any) -> None:
    tx.run(_ADD_VERSION, **columns)


def add_tombstone(tx: Transaction, **columns: Any) -> None:
    tx.run(_ADD_TOMBSTONE, **columns)

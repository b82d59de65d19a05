"""Which sessions have more observations than their transcripts were written of."""

from __future__ import annotations

from sqlalchemy import bindparam, exists, func, or_, select

from memory_core.store.statement import Statement
from memory_core.store.tables import observations, sessions
from memory_core.store.tables_durable import durable_sessions
from memory_core.store.tables_jobs import jobs
from memory_core.store.transaction import Reading

KIND = "hook_journal"
_s, _o, _j, _d = sessions.c, observations.c, jobs.c, durable_sessions.c
_LAST_RECORDED = (
    select(_o.recorded_at)
    .where(_o.session_id == _s.id)
    .order_by(_o.seq.desc())
    .limit(1)
    .correlate(sessions)
    .scalar_subquery()
)
#: A job that writes the session, whatever its state.
JOURNAL_OF_SESSION = (
    (_j.kind == KIND) & (_j.scope == _s.project_id) & (_j.subject == func.lower(func.hex(_s.id)))
)
_UNWRITTEN = Statement(
    select(_s.id)
    .where(
        _s.id > bindparam("after"),
        _s.substance_count > 0,
        ~exists().where(_d.session_id == _s.id, or_(_d.origin != "hooks", _d.deleted_at.is_not(None))),
        ~exists().where(JOURNAL_OF_SESSION, _j.created_at >= func.coalesce(_LAST_RECORDED, 0)),
    )
    .order_by(_s.id)
    .limit(bindparam("limit"))
)


def unwritten(read: Reading, *, after: bytes, limit: int) -> list[bytes]:
    """Ids behind `after`, in their order, of sessions that hooks tell of and no job was made for since their last observation."""
    return [row["id"] for row in read.rows(_UNWRITTEN, after=after, limit=limit)]

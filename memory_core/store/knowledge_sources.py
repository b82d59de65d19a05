"""Where knowledge comes from: sessions, their directories, and what was drawn from them before."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import bindparam, insert, select

from memory_core.domain.directory import DirectoryId
from memory_core.domain.knowledge import Provenance
from memory_core.store.knowledge import parts_of
from memory_core.store.statement import Row, Statement
from memory_core.store.tables import sessions
from memory_core.store.tables_durable import distillation_results, durable_sessions
from memory_core.store.transaction import Reading, Transaction

_d = durable_sessions.c


@dataclass(frozen=True, kw_only=True)
class SourceSession:
    """A session as far as it vouches for what was learnt in it."""

    id: bytes
    project_id: bytes
    #: None: no client said.
    directory: DirectoryId | None
    #: All its exact events so far; None where there are none.
    provenance: Provenance | None


_SESSION = Statement(
    select(
        sessions.c.id,
        sessions.c.project_id,
        _d.host,
        _d.device,
        _d.inode,
        _d.last_sequence,
        _d.digest,
    )
    .outerjoin_from(sessions, durable_sessions, _d.session_id == sessions.c.id)
    .where(sessions.c.id == bindparam("id"))
)
_LAST_IN = Statement(
    select(sessions.c.project_id)
    .join_from(durable_sessions, sessions, sessions.c.id == _d.session_id)
    .where(_d.host == bindparam("host"), _d.device == bindparam("device"), _d.inode == bindparam("inode"))
    .order_by(_d.updated_at.desc())
    .limit(1)
)
_RESULT = Statement(
    select(distillation_results).where(
        distillation_results.c.job_id == bindparam("job_id"),
        distillation_results.c.candidate_index == bindparam("candidate_index"),
    )
)
_ADD_RESULT = Statement(
    insert(distillation_results).values(
        **{column.name: bindparam(column.name) for column in distillation_results.c}
    )
)


def of_session(reading: Reading, session_id: bytes) -> SourceSession | None:
    row = reading.row(_SESSION, id=session_id)
    if row is None:
        return None
    directory = provenance = None
    if row["host"] is not None:
        directory = DirectoryId(host=row["host"], device=row["device"], inode=row["inode"])
    if row["last_sequence"]:
        provenance = Provenance(
            session_id=row["id"],
            first_sequence=1,
            last_sequence=row["last_sequence"],
            sha256=row["digest"],
        )
    return SourceSession(
        id=row["id"], project_id=row["project_id"], directory=directory, provenance=provenance
    )


def project_of_directory(reading: Reading, directory: DirectoryId) -> bytes | None:
    """The project of the durable session that was last at work in a directory."""
    row = reading.row(_LAST_IN, **parts_of(directory))
    return None if row is None else row["project_id"]


def result(reading: Reading, job_id: bytes, index: int) -> Row | None:
    """What became of a candidate: knowledge_id, version, action; None where it was not looked at yet."""
    return reading.row(_RESULT, job_id=job_id, candidate_index=index)


def add_result(
    tx: Transaction, job_id: bytes, index: int, *, action: str, entry_id: bytes | None, version: int | None
) -> None:
    tx.run(
        _ADD_RESULT,
        job_id=job_id,
        candidate_index=index,
        knowledge_id=entry_id,
        version=version,
        action=action,
        created_at=tx.now,
    )

"""The audit log: who did what to which page or setting; ids, counts and names only, never page or prompt text."""

from __future__ import annotations

from typing import Any

import msgspec
from sqlalchemy import bindparam, insert, select

from memory_core.store.statement import Row, Statement
from memory_core.store.tables import audit_log
from memory_core.store.transaction import Reading, Transaction

_RECORD = Statement(
    insert(audit_log).values(
        at=bindparam("at"),
        op=bindparam("op"),
        project_id=bindparam("project_id"),
        page_id=bindparam("page_id"),
        principal=bindparam("principal"),
        command_id=bindparam("command_id"),
        detail=bindparam("detail"),
    )
)
_NEWEST = Statement(select(audit_log).order_by(audit_log.c.seq.desc()).limit(bindparam("count")))


def record(
    tx: Transaction,
    op: str,
    *,
    project_id: bytes | None = None,
    page_id: bytes | None = None,
    detail: dict[str, Any] | None = None,
) -> None:
    """One line, with the principal and the id of the command at hand. `op` is a stable name such as `page_deleted`."""
    tx.run(
        _RECORD,
        at=tx.now,
        op=op,
        project_id=project_id,
        page_id=page_id,
        principal=tx.principal,
        command_id=tx.envelope.id if tx.envelope else None,
        detail=msgspec.json.encode(detail or {}).decode(),
    )


def newest(reading: Reading, *, count: int) -> list[Row]:
    """The latest lines, newest first."""
    return reading.rows(_NEWEST, count=count)

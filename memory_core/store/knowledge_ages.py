"""What has become old of knowledge: entries that nobody said again, tombstones past their time, versions that are too many."""

from __future__ import annotations

from sqlalchemy import and_, bindparam, select

from memory_core.store.statement import Statement, text_statement
from memory_core.store.tables_knowledge import knowledge
from memory_core.store.transaction import Reading, Transaction

_k = knowledge.c
_AGED = Statement(
    select(_k.id)
    .where(_k.tombstoned_at.is_(None), _k.pinned == 0, _k.updated_at <= bindparam("before"))
    .order_by(_k.updated_at, _k.id)
    .limit(bindparam("limit"))
)
_PAST_GRACE = Statement(
    select(_k.id)
    .where(and_(_k.tombstoned_at.is_not(None), _k.tombstoned_at <= bindparam("before")), _k.pinned == 0)
    .order_by(_k.tombstoned_at, _k.id)
    .limit(bindparam("limit"))
)
_PRUNE = text_statement(
    "DELETE FROM knowledge_versions WHERE rowid IN ("
    "SELECT v.rowid FROM ("
    "SELECT knowledge_id FROM knowledge_versions GROUP BY knowledge_id HAVING count(*) > :kept"
    ") AS many JOIN knowledge AS k ON k.id = many.knowledge_id AND k.pinned = 0"
    " JOIN knowledge_versions AS v ON v.knowledge_id = k.id AND v.version <> k.active_version"
    " WHERE (SELECT count(*) FROM knowledge_versions AS n WHERE n.knowledge_id = k.id AND n.version > v.version) >= :kept"
    " ORDER BY v.knowledge_id, v.version LIMIT :limit)"
)


def aged(reading: Reading, *, before: int, limit: int) -> list[bytes]:
    """Entries without a pin that nobody changed since `before` (UTC microseconds), the oldest first."""
    return [row["id"] for row in reading.rows(_AGED, before=before, limit=limit)]


def past_grace(reading: Reading, *, before: int, limit: int) -> list[bytes]:
    """Entries that were forgotten at `before` or earlier."""
    return [row["id"] for row in reading.rows(_PAST_GRACE, before=before, limit=limit)]


def prune(tx: Transaction, *, kept: int, limit: int) -> int:
    """Delete versions of unpinned entries that are neither active nor among the newest `kept`; how many."""
    return tx.run(_PRUNE, kept=kept, limit=limit)

"""Knowledge grows old: entries that nobody said again, tombstones past their time, versions that are too many. For maintenance,
which knows the ages; each function does at most `limit` rows and says how many it did."""

from __future__ import annotations

from memory_core.commands import knowledge_entries
from memory_core.domain.knowledge import MANUAL_CONFIDENCE, Origin
from memory_core.ids import id_text
from memory_core.store import knowledge, knowledge_ages
from memory_core.store import knowledge_changes as changes
from memory_core.store.audit import record
from memory_core.store.transaction import Transaction


def tombstone_aged(tx: Transaction, *, before: int, limit: int) -> int:
    """Forget entries without a pin that were last changed at `before` (UTC microseconds) or earlier, with a record of it."""
    ids = knowledge_ages.aged(tx, before=before, limit=limit)
    for entry_id in ids:
        entry = knowledge.by_id(tx, entry_id)
        if entry is not None:
            knowledge_entries.forget(tx, entry, Origin.AGE, MANUAL_CONFIDENCE)
            record(
                tx,
                "forget_knowledge",
                project_id=entry.project_id,
                page_id=entry.page_id,
                detail={"entry": id_text(entry.id), "cause": "age"},
            )
    return len(ids)


def delete_old_tombstones(tx: Transaction, *, before: int, limit: int) -> int:
    """Delete entries that were forgotten at `before` or earlier, with their versions. The deleted page keeps its own."""
    ids = knowledge_ages.past_grace(tx, before=before, limit=limit)
    for entry_id in ids:
        changes.remove(tx, entry_id)
    return len(ids)


def prune_versions(tx: Transaction, *, kept: int, limit: int) -> int:
    """Delete versions of unpinned entries that are neither active nor among the newest `kept`."""
    return knowledge_ages.prune(tx, kept=kept, limit=limit)

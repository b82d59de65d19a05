"""What maintenance does, one bounded phase at a time; which follows which stands in the job kind of that name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from memory_core.commands import knowledge_ageing
from memory_core.commands.durable_deletion import DeleteSession, delete, drop_slice
from memory_core.domain.command import Refusal
from memory_core.domain.retention import DAY_US, Retention
from memory_core.store import assets, durable_ages, durable_sessions
from memory_core.store.transaction import Transaction

#: A phase does at most `limit` rows and says how many it did: fewer, and it is done.
Phase = Callable[[Transaction, Retention, int], int]


def clear_leases(tx: Transaction, _retention: Retention, limit: int) -> int:
    return durable_ages.clear_expired_leases(tx, limit)


def forget_aged(tx: Transaction, retention: Retention, limit: int) -> int:
    before = tx.now - retention.knowledge_days * DAY_US
    return knowledge_ageing.tombstone_aged(tx, before=before, limit=limit)


def delete_tombstones(tx: Transaction, retention: Retention, limit: int) -> int:
    before = tx.now - retention.tombstone_days * DAY_US
    return knowledge_ageing.delete_old_tombstones(tx, before=before, limit=limit)


def prune_versions(tx: Transaction, retention: Retention, limit: int) -> int:
    return knowledge_ageing.prune_versions(tx, kept=retention.versions_per_key, limit=limit)


def delete_sessions(tx: Transaction, retention: Retention, _limit: int) -> int:
    """One at a time: a session's rows are many. What somebody works with meanwhile is left for the next time."""
    before = tx.now - retention.session_days * DAY_US
    for session_id in durable_ages.past_age(tx, before=before, now=tx.now, limit=1):
        owner = durable_sessions.one(tx, session_id)
        with tx.on_behalf(owner.owner if owner else None, tx.token_scope):
            answer = delete(DeleteSession(session=session_id), tx)
        return 0 if isinstance(answer, Refusal) else 1
    return 0


def drop_deleted(tx: Transaction, _retention: Retention, _limit: int) -> int:
    """A slice of a session that is being deleted, whoever began it."""
    for session_id in durable_sessions.hidden(tx, 1):
        drop_slice(tx, session_id)
        return 1
    return 0


def notice_assets(tx: Transaction, _retention: Retention, limit: int) -> int:
    return assets.notice_unreferenced(tx, limit)


def forget_assets(tx: Transaction, retention: Retention, limit: int) -> int:
    return assets.forget_unreferenced(tx, before=tx.now - retention.asset_days * DAY_US, limit=limit)


def optimize(tx: Transaction, _retention: Retention, _limit: int) -> int:
    durable_ages.optimize(tx)
    return 0


#: In their order. `files` has no command: its work is done beside the data directory, before the writer hears of it.
PHASES: Final[dict[str, Phase | None]] = {
    "leases_cleared": clear_leases,
    "knowledge_forgotten": forget_aged,
    "tombstones_deleted": delete_tombstones,
    "versions_deleted": prune_versions,
    "sessions_deleted": delete_sessions,
    "slices_dropped": drop_deleted,
    "assets_unreferenced": notice_assets,
    "assets_forgotten": forget_assets,
    "files": None,
    "optimized": optimize,
}
#: Phases that do one thing at a time and are repeated until they have nothing to do.
ONE_AT_A_TIME: Final = frozenset({"sessions_deleted", "slices_dropped"})

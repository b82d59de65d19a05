"""Which commands took effect: the table that makes a second delivery harmless."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from sqlalchemy import Table, bindparam, delete, insert, select, tuple_

from memory_core import limits
from memory_core.clock import MICROSECONDS
from memory_core.domain.command import Envelope
from memory_core.store.statement import Row, Statement, text_statement
from memory_core.store.tables import command_ids
from memory_core.store.transaction import Reading, Transaction

COMMITTED: Final = "committed"
REFUSED: Final = "refused"
DEAD: Final = "dead"

_DAY = 24 * 3600 * MICROSECONDS
_BY_ID = (command_ids.c.principal == bindparam("principal"), command_ids.c.id == bindparam("id"))
_LOOKUP = Statement(
    select(command_ids.c.body_hash, command_ids.c.status, command_ids.c.result).where(*_BY_ID)
)
#: Many ids at once; `ids` is a JSON array of their digits.
_SEEN = text_statement(
    "SELECT c.id FROM json_each(:ids) AS wanted CROSS JOIN command_ids AS c"
    " ON c.principal = :principal AND c.id = unhex(wanted.value)"
)
_RECORD = Statement(insert(command_ids))
_FORGET = Statement(delete(command_ids).where(*_BY_ID))


def _purge(table: Table) -> Statement:
    old = (
        select(table.c.principal, table.c.id)
        .where(table.c.recorded_at < bindparam("before"), table.c.is_foreign == bindparam("is_foreign"))
        .order_by(table.c.recorded_at)
        .limit(bindparam("slice"))
    )
    return Statement(delete(table).where(tuple_(table.c.principal, table.c.id).in_(old)))


_PURGE = _purge(command_ids)


def lookup(reading: Reading, principal: str, command_id: bytes) -> Row | None:
    """`body_hash`, `status` (`committed`, `refused`, `dead`) and `result` (JSON text or NULL) of a command that ended."""
    return reading.row(_LOOKUP, principal=principal, id=command_id)


def look_ahead(tx: Transaction, envelopes: Iterable[Envelope]) -> None:
    """Ask at once which commands of a batch took effect before; the others are `unseen` until they are recorded."""
    by_principal: dict[str, list[bytes]] = {}
    for envelope in envelopes:
        by_principal.setdefault(envelope.principal, []).append(envelope.id)
    for principal, ids in by_principal.items():
        rows = tx.rows(_SEEN, principal=principal, ids=json.dumps([one.hex() for one in ids]))
        seen = {row["id"] for row in rows}
        tx.unseen.update((principal, one) for one in ids if one not in seen)


def record(tx: Transaction, envelope: Envelope, status: str, result: str | None) -> None:
    """Write the id in the same transaction as the effect. `result` is JSON text, for commands with a reply."""
    tx.unseen.discard((envelope.principal, envelope.id))
    row: dict[str, Any] = {
        "principal": envelope.principal,
        "id": envelope.id,
        "body_hash": envelope.body_hash,
        "status": status,
        "result": result,
        "is_foreign": int(envelope.is_foreign),
        "recorded_at": tx.now,
    }
    tx.insert_later(_RECORD, row)


def forget(tx: Transaction, principal: str, command_id: bytes) -> None:
    """Remove an id, so that the same command can take effect (a dead letter that is tried again)."""
    tx.run(_FORGET, principal=principal, id=command_id)


def purge(tx: Transaction, slice_rows: int) -> int:
    """Delete at most `slice_rows` ids past their time of each kind; how many went.

    Ids that memoryd made are kept past the client spool's seven days; keys that clients made carry no
    age that we could trust and are kept longer.
    """
    kept: tuple[tuple[int, int], ...] = ((0, limits.COMMAND_ID_DAYS), (1, limits.FOREIGN_COMMAND_ID_DAYS))
    parameters: list[dict[str, Any]] = [
        {"is_foreign": foreign, "before": tx.now - days * _DAY, "slice": slice_rows} for foreign, days in kept
    ]
    return sum(tx.run(_PURGE, **values) for values in parameters)

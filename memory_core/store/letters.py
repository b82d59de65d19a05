"""Commands that did not take effect: dead letters (they failed each time) and parked ones (not known yet, or to be tried again)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from sqlalchemy import bindparam, delete, func, select
from sqlalchemy.dialects import sqlite

from memory_core.domain.command import Envelope
from memory_core.store import command_ids
from memory_core.store.statement import Statement
from memory_core.store.tables import dead_letters, parked_letters
from memory_core.store.transaction import Reading, Transaction

#: Why a letter is parked: `unknown` waits for a version that knows it, `retry` was asked for by a person, `died`
#: ended the writer each time it was tried and gets one more chance when nothing else waits.
UNKNOWN: Final = "unknown"
RETRY: Final = "retry"
DIED: Final = "died"

ERROR_MAX_CHARS = 4_096


@dataclass(frozen=True, kw_only=True)
class Letter:
    """One dead or parked command. `reason` is a dead letter's cause (`exception`, `death`, `hang`) or why it is parked."""

    seq: int
    envelope: Envelope
    reason: str
    #: What went wrong, for people; empty for parked ones.
    error: str
    attempts: int
    #: When it was put here, UTC microseconds.
    created_at: int


def _by_id(table: Any) -> tuple[Any, Any]:
    return table.c.principal == bindparam("principal"), table.c.id == bindparam("id")


_BURY = Statement(sqlite.insert(dead_letters).on_conflict_do_nothing())
_PARK = Statement(sqlite.insert(parked_letters).on_conflict_do_nothing())
_UNPARK = Statement(delete(parked_letters).where(*_by_id(parked_letters)))
_DISCARD = Statement(delete(dead_letters).where(*_by_id(dead_letters)))
_DEAD = Statement(
    select(dead_letters)
    .where(dead_letters.c.seq > bindparam("after"))
    .order_by(dead_letters.c.seq)
    .limit(bindparam("count"))
)
_DEAD_BY_ID = Statement(
    select(dead_letters).where(dead_letters.c.id == bindparam("id")).order_by(dead_letters.c.seq)
)
_PARKED = Statement(
    select(parked_letters)
    .where(parked_letters.c.seq > bindparam("after"))
    .order_by(parked_letters.c.seq)
    .limit(bindparam("count"))
)
_PARKED_FOR = Statement(
    select(parked_letters)
    .where(parked_letters.c.reason == bindparam("reason"))
    .order_by(parked_letters.c.seq)
    .limit(bindparam("count"))
)
_COUNTS = Statement(
    select(
        select(func.count()).select_from(dead_letters).scalar_subquery().label("dead"),
        select(func.count()).select_from(parked_letters).scalar_subquery().label("parked"),
    )
)


def bury(tx: Transaction, envelope: Envelope, *, cause: str, error: str, attempts: int) -> None:
    """Make a dead letter of a command; its id is recorded as dead, so that a re-send changes nothing."""
    tx.run(_BURY, **_columns(tx, envelope), cause=cause, error=error[:ERROR_MAX_CHARS], attempts=attempts)
    result = msgspec.json.encode({"code": "dead", "message": error[:500]}).decode()
    command_ids.record(tx, envelope, command_ids.DEAD, result if envelope.wants_reply else None)


def park(tx: Transaction, envelope: Envelope, reason: str) -> bool:
    """Keep a command for later, once; no id is recorded. False when it lay there already."""
    return tx.run(_PARK, **_columns(tx, envelope), reason=reason) > 0


def unpark(tx: Transaction, envelope: Envelope) -> None:
    tx.run(_UNPARK, principal=envelope.principal, id=envelope.id)


def retry(tx: Transaction, letter: Letter) -> None:
    """Take a dead letter's command up again: parked, with its id forgotten, so that the writer applies it as new."""
    discard(tx, letter)
    command_ids.forget(tx, letter.envelope.principal, letter.envelope.id)
    park(tx, letter.envelope, RETRY)


def discard(tx: Transaction, letter: Letter) -> None:
    """Drop a dead letter. Its id stays recorded as dead."""
    tx.run(_DISCARD, principal=letter.envelope.principal, id=letter.envelope.id)


def dead(reading: Reading, *, after: int = 0, count: int = 100) -> list[Letter]:
    """Dead letters in the order of their making, those behind `after` (a `seq`)."""
    return [_dead_letter(row) for row in reading.rows(_DEAD, after=after, count=count)]


def dead_by_id(reading: Reading, command_id: bytes) -> list[Letter]:
    """The dead letters with that command id: at most one per principal."""
    return [_dead_letter(row) for row in reading.rows(_DEAD_BY_ID, id=command_id)]


def parked(reading: Reading, *, after: int = 0, count: int = 100) -> list[Letter]:
    return [_parked_letter(row) for row in reading.rows(_PARKED, after=after, count=count)]


def parked_for(reading: Reading, reason: str, *, count: int) -> list[Letter]:
    """Parked letters with that reason, oldest first."""
    return [_parked_letter(row) for row in reading.rows(_PARKED_FOR, reason=reason, count=count)]


def counts(reading: Reading) -> Mapping[str, int]:
    """How many letters are `dead` and `parked`."""
    row = reading.row(_COUNTS)
    return {"dead": row["dead"], "parked": row["parked"]} if row is not None else {"dead": 0, "parked": 0}


def _columns(tx: Transaction, envelope: Envelope) -> dict[str, Any]:
    return {
        "seq": None,
        "principal": envelope.principal,
        "id": envelope.id,
        "envelope": msgspec.msgpack.encode(envelope),
        "name": envelope.name,
        "version": envelope.version,
        "recorded_at": envelope.recorded_at,
        "created_at": tx.now,
    }


def _dead_letter(row: Any) -> Letter:
    return _letter(row, reason=row["cause"], error=row["error"], attempts=row["attempts"])


def _parked_letter(row: Any) -> Letter:
    return _letter(row, reason=row["reason"], error="", attempts=0)


def _letter(row: Any, *, reason: str, error: str, attempts: int) -> Letter:
    return Letter(
        seq=row["seq"],
        envelope=msgspec.msgpack.decode(row["envelope"], type=Envelope),
        reason=reason,
        error=error,
        attempts=attempts,
        created_at=row["created_at"],
    )

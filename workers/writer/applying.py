"""One command inside a transaction: is it new, known and in time, and what became of it."""

from __future__ import annotations

import traceback

import msgspec

from memory_core import commands
from memory_core.commands import CommandKind
from memory_core.domain.command import Envelope, Refusal
from memory_core.errors import Invalid, StorageFailed
from memory_core.store import command_ids, letters
from memory_core.store.transaction import Transaction
from workers.writer.report import Fate, Outcome

_FRAMES_SHOWN = 6


def settled(tx: Transaction, envelope: Envelope, now: int) -> Fate | None:
    """The fate of a command that is not to be applied any more; None for one that is. Changes nothing."""
    if (envelope.principal, envelope.id) not in tx.unseen:
        seen = command_ids.lookup(tx, envelope.principal, envelope.id)
        if seen is not None:
            return Fate.DUPLICATE if seen["body_hash"] == envelope.body_hash else Fate.MISMATCH
    if envelope.not_after is not None and now > envelope.not_after:
        return Fate.LATE
    return None


def apply_one(tx: Transaction, envelope: Envelope, *, from_parked: bool = False) -> Outcome:
    """Apply one command, or find why not; its id is recorded in the same transaction as its effect.

    Any exception is the caller's reason to roll back the whole transaction.
    """
    fate = settled(tx, envelope, tx.now)
    if fate is None:
        fate = _apply(tx, envelope)
    if from_parked and fate is not Fate.PARKED:
        letters.unpark(tx, envelope)
    return Outcome(envelope, fate)


def _apply(tx: Transaction, envelope: Envelope) -> Fate:
    kind = _known(envelope)
    if kind is None:
        return Fate.PARKED if letters.park(tx, envelope, letters.UNKNOWN) else Fate.DUPLICATE
    try:
        body = kind.decode(envelope.body, envelope.version)
    except Invalid as error:
        # It would fail the same way each time; nothing was written yet.
        letters.bury(tx, envelope, cause="exception", error=str(error), attempts=1)
        return Fate.DEAD
    tx.envelope, tx.wrote = envelope, False
    answer = kind.apply(body, tx)
    if not isinstance(answer, Refusal):
        result = msgspec.json.encode(answer).decode() if envelope.wants_reply else None
        command_ids.record(tx, envelope, command_ids.COMMITTED, result)
        return Fate.COMMITTED
    if tx.wrote:
        raise StorageFailed(f"{envelope.name} wrote before it refused: {answer.code}")
    told: dict[str, object] = {"code": answer.code, "message": answer.message}
    if answer.detail:
        told["detail"] = answer.detail
    said = msgspec.json.encode(told).decode()
    command_ids.record(tx, envelope, command_ids.REFUSED, said if envelope.wants_reply else None)
    return Fate.REFUSED


def _known(envelope: Envelope) -> CommandKind | None:
    """The kind of a command, None for an unknown name or a version newer than ours."""
    if envelope.name not in commands.registry:
        return None
    kind = commands.registry.get(envelope.name)
    return kind if envelope.version <= kind.version else None


def describe(error: BaseException) -> str:
    """An exception for a dead letter: its type, its text, and where it came from."""
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES_SHOWN:]
    places = " < ".join(
        f"{frame.name} ({frame.filename.rsplit('/', 1)[-1]}:{frame.lineno})" for frame in reversed(frames)
    )
    return f"{type(error).__name__}: {error} [{places}]"

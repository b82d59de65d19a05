"""Turns that are more than one command may write: staged past the session's head, where nobody sees them, until the last command moves
the head over them. What was staged and not published goes with the next turn that is written, or with the next claim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memory_core import limits
from memory_core.commands import Answer, command, durable_leftovers
from memory_core.commands.durable_lease import lease_end, refusing
from memory_core.commands.durable_turns import (
    OfTurn,
    Place,
    TurnEvent,
    WrittenTurn,
    check_assets,
    check_turn,
    check_turn_bytes,
    move_head,
    new_events,
    writable,
    write_events,
)
from memory_core.domain.command import Refusal
from memory_core.domain.durable_session import DurableSession
from memory_core.domain.session_event import NewEvent
from memory_core.errors import Conflict, Corrupt, Invalid
from memory_core.ids import id_text
from memory_core.store import durable_sessions, session_events
from memory_core.store.transaction import Reading, Transaction


@dataclass(frozen=True, kw_only=True)
class StageTurn(OfTurn):
    """A slice of a turn of `turn_size` events, from `first_index` on. The slice at 0 begins the turn anew; the others say with
    `turn` which one they go on with, as that slice was answered: two that are staged at once must not become one."""

    turn_size: int
    first_index: int
    events: tuple[TurnEvent, ...]
    turn: bytes | None = None


@dataclass(frozen=True, kw_only=True)
class PublishTurn(OfTurn):
    """The staged turn is whole: from now on it is part of the session."""

    turn_size: int
    turn: bytes | None = None


@dataclass(frozen=True, kw_only=True)
class Staged:
    """What is staged in a session: of a turn of `turn_size` events the first `count`, with payloads of `size` bytes."""

    turn_id: bytes
    turn_size: int
    count: int
    size: int
    digest: bytes
    created_at: int


@command(StageTurn, name="stage_durable_turn")
@refusing
def stage(body: StageTurn, tx: Transaction) -> Answer | Refusal:
    """Answer: `{"staged", "turn_id"}`: how many events of the turn there are now."""
    events = new_events(body.events)
    check_turn(events)
    if not 0 < body.turn_size <= limits.TURN_EVENTS_MAX:
        raise Invalid(f"turn_size: 1 to {limits.TURN_EVENTS_MAX} events")
    session = writable(tx, body)
    before = _of_turn(tx, session, body.turn) if body.first_index else None
    if body.first_index and (
        before is None or (before.count, before.turn_size) != (body.first_index, body.turn_size)
    ):
        count = before.count if before else 0
        raise Conflict(
            f"of this turn {count} events are staged; go on there, or begin with first_index 0",
            detail={"staged": count},
        )
    if body.first_index + len(events) > body.turn_size:
        raise Invalid(f"the turn was said to have {body.turn_size} events, and this slice goes past that")
    check_turn_bytes((before.size if before else 0) + sum(len(e.payload_json.encode()) for e in events))
    check_assets(tx, events)
    turn = before.turn_id if before else tx.new_id()
    count = stage_events(tx, session, events, before=before, turn_size=body.turn_size, turn=turn)
    return {"staged": count, "turn_id": id_text(turn)}


@command(PublishTurn, name="publish_durable_turn")
@refusing
def publish(body: PublishTurn, tx: Transaction) -> Answer | Refusal:
    """Answer: as that of an appended turn."""
    session = writable(tx, body)
    found = _of_turn(tx, session, body.turn)
    if found is None or (found.count, found.turn_size) != (body.turn_size, body.turn_size):
        count = found.count if found else 0
        raise Conflict(
            f"of {body.turn_size} events {count} are staged; stage the rest, then publish",
            detail={"staged": count},
        )
    return publish_staged(tx, session, found, substance=body.turn_size).answer()


def _of_turn(read: Reading, session: DurableSession, turn: bytes | None) -> Staged | None:
    """What is staged of that turn; of whichever there is for a command that was sent before turns were named."""
    found = so_far(read, session)
    return None if found is not None and turn not in (None, found.turn_id) else found


# --- for commands that write turns of their own ----------------------------------------------------


def so_far(read: Reading, session: DurableSession) -> Staged | None:
    """What is staged behind the session's head. Raises `Corrupt` where it has gaps."""
    found = session_events.staged(read, session.id, session.last_sequence)
    if not found["count"]:
        return None
    last = session_events.head_of(read, session.id, session.last_sequence + found["count"])
    if last is None:
        raise Corrupt("what is staged of a turn has gaps")
    return Staged(
        turn_id=found["turn_id"],
        turn_size=found["turn_size"],
        count=found["count"],
        size=found["bytes"],
        digest=last["digest"],
        created_at=found["created_at"],
    )


def stage_events(
    tx: Transaction,
    session: DurableSession,
    events: Sequence[NewEvent],
    *,
    before: Staged | None,
    turn_size: int,
    turn: bytes | None = None,
) -> int:
    """Stage checked events behind those of `before`; without it the turn begins anew, with the id `turn` where it is given. How many
    there are now. The lease lasts anew. Raises `Conflict` as `durable_leftovers.drop`."""
    if before is None:
        durable_leftovers.drop(tx, session)
    count = before.count if before else 0
    write_events(
        tx,
        events,
        Place(
            session_id=session.id,
            turn_id=before.turn_id if before else turn or tx.new_id(),
            turn_size=turn_size,
            index=count,
            sequence=session.last_sequence + count + 1,
            digest=before.digest if before else session.digest,
            created_at=before.created_at if before else tx.now,
        ),
    )
    durable_sessions.extend(tx, session.id, lease_end(tx))
    return count + len(events)


def publish_staged(
    tx: Transaction, session: DurableSession, staged: Staged, *, substance: int
) -> WrittenTurn:
    """The staged turn, which is whole, becomes part of the session."""
    written = WrittenTurn(
        turn_id=staged.turn_id,
        first_sequence=session.last_sequence + 1,
        last_sequence=session.last_sequence + staged.count,
        digest=staged.digest,
    )
    move_head(tx, session, written, substance=substance)
    return written

"""Writing turns into durable sessions: whole or not at all, by whoever holds the lease and has read what there is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from memory_core import limits
from memory_core.commands import Answer, command, durable_leftovers
from memory_core.commands.durable_lease import held, lease_end, refusing
from memory_core.commands.durable_said import keep_said
from memory_core.domain import transcript_digest
from memory_core.domain.agent_message import AssetKind
from memory_core.domain.command import Refusal
from memory_core.domain.directory import DirectoryId
from memory_core.domain.durable_session import DurableSession
from memory_core.domain.session_event import (
    WRITABLE,
    AssetLink,
    NewEvent,
    SessionEvent,
    TranscriptKind,
)
from memory_core.errors import Conflict, Invalid
from memory_core.ids import id_text
from memory_core.store import durable_sessions, session_events
from memory_core.store.transaction import Transaction

#: What an agent, its person or its tools said or did, as against what stands beside it.
SUBSTANCE = frozenset(
    {
        TranscriptKind.USER_MESSAGE,
        TranscriptKind.ASSISTANT_MESSAGE,
        TranscriptKind.TOOL_CALL,
        TranscriptKind.TOOL_RESULT,
    }
)


@dataclass(frozen=True, kw_only=True)
class EventAsset:
    sha256: bytes
    bytes: int
    kind: str


@dataclass(frozen=True, kw_only=True)
class TurnEvent:
    """One event on its way: any JSON as payload."""

    kind: str
    payload: Any
    assets: tuple[EventAsset, ...] = ()


@dataclass(frozen=True, kw_only=True)
class OfTurn:
    """Whose turn it is, and where its writer believes the session to end."""

    session: bytes
    lease_hash: bytes
    directory: DirectoryId
    expected_last_sequence: int


@dataclass(frozen=True, kw_only=True)
class AppendTurn(OfTurn):
    """One whole turn behind the session's last event."""

    events: tuple[TurnEvent, ...]


@dataclass(frozen=True, kw_only=True)
class WrittenTurn:
    """Where a turn came to stand, and the session's head after it."""

    turn_id: bytes
    first_sequence: int
    last_sequence: int
    digest: bytes

    def answer(self) -> dict[str, Any]:
        return {
            "turn_id": id_text(self.turn_id),
            "first_sequence": self.first_sequence,
            "last_sequence": self.last_sequence,
            "digest": self.digest.hex(),
        }


@command(AppendTurn, name="append_durable_turn")
@refusing
def append(body: AppendTurn, tx: Transaction) -> Answer | Refusal:
    """Answer: `{"turn_id", "first_sequence", "last_sequence", "digest"}`."""
    events = new_events(body.events)
    check_turn(events)
    session = writable(tx, body)
    check_assets(tx, events)
    return append_turn(tx, session, events).answer()


# --- for commands that write turns of their own ----------------------------------------------------


def new_events(events: Sequence[TurnEvent]) -> list[NewEvent]:
    """Events as they are kept. Raises `Invalid` for a kind or an asset that cannot be."""
    return [_new_event(index, event) for index, event in enumerate(events)]


def check_turn(events: Sequence[NewEvent]) -> None:
    """Raises `Invalid` for a turn, or a slice of one, that is empty or longer than a turn may be."""
    if not 0 < len(events) <= limits.TURN_EVENTS_MAX:
        raise Invalid(f"events: a turn has 1 to {limits.TURN_EVENTS_MAX} events")
    total = 0
    for index, event in enumerate(events):
        size = len(event.payload_json.encode())
        if size > limits.EVENT_PAYLOAD_MAX_BYTES:
            raise Invalid(
                f"events[{index}]: a payload has at most {limits.EVENT_PAYLOAD_MAX_BYTES} bytes as JSON; this has {size}"
            )
        if len(event.assets) > limits.EVENT_ASSETS_MAX:
            raise Invalid(f"events[{index}]: an event has at most {limits.EVENT_ASSETS_MAX} assets")
        total += size
    check_turn_bytes(total)


def check_assets(tx: Transaction, events: Sequence[NewEvent]) -> None:
    """Raises `Invalid` unless each asset is catalogued, with that many bytes."""
    for index, event in enumerate(events):
        for asset in event.assets:
            size = session_events.asset_bytes(tx, asset.sha256)
            if size is None:
                raise Invalid(
                    f"events[{index}]: there is no asset {asset.sha256.hex()}; upload it first, then write the turn"
                )
            if size != asset.bytes:
                raise Invalid(
                    f"events[{index}]: asset {asset.sha256.hex()} has {size} bytes, not {asset.bytes}"
                )


def append_turn(
    tx: Transaction, session: DurableSession, events: Sequence[NewEvent], *, by_holder: bool = True
) -> WrittenTurn:
    """Write a checked turn behind the session's last event, and move its head.

    By its holder the lease is extended. By anybody else (a compaction) whoever comes back with an older lease must replay first.
    Raises `Conflict` as `durable_leftovers.drop`.
    """
    turn_id = tx.new_id()
    durable_leftovers.drop(tx, session)
    digest = write_events(
        tx,
        events,
        Place(
            session_id=session.id,
            turn_id=turn_id,
            turn_size=len(events),
            index=0,
            sequence=session.last_sequence + 1,
            digest=session.digest,
            created_at=tx.now,
        ),
    )
    written = WrittenTurn(
        turn_id=turn_id,
        first_sequence=session.last_sequence + 1,
        last_sequence=session.last_sequence + len(events),
        digest=digest,
    )
    substance = sum(event.kind in SUBSTANCE for event in events)
    move_head(tx, session, written, substance=substance, by_holder=by_holder)
    return written


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where the next event goes: its index in its turn, its sequence, and the transcript's digest before it."""

    session_id: bytes
    turn_id: bytes
    turn_size: int
    index: int
    sequence: int
    digest: bytes
    created_at: int


def write_events(tx: Transaction, events: Sequence[NewEvent], place: Place) -> bytes:
    """The transcript's digest after them."""
    stored: list[tuple[SessionEvent, NewEvent]] = []
    for event in events:
        made = _stored(tx.new_id(), event, place)
        stored.append((made, event))
        place = replace(place, index=place.index + 1, sequence=place.sequence + 1, digest=made.digest)
    session_events.add(tx, [made for made, _ in stored])
    for made, event in stored:
        session_events.link(tx, made, event.assets)
    return place.digest


def _stored(event_id: bytes, event: NewEvent, place: Place) -> SessionEvent:
    digest = transcript_digest.following(
        place.digest,
        id=event_id,
        sequence=place.sequence,
        turn_id=place.turn_id,
        turn_index=place.index,
        turn_size=place.turn_size,
        kind=event.kind.value,
        payload_json=event.payload_json,
        created_at=place.created_at,
    )
    return SessionEvent(
        id=event_id,
        session_id=place.session_id,
        sequence=place.sequence,
        turn_id=place.turn_id,
        turn_index=place.index,
        turn_size=place.turn_size,
        kind=event.kind,
        payload_json=event.payload_json,
        digest=digest,
        created_at=place.created_at,
    )


def move_head(
    tx: Transaction,
    session: DurableSession,
    written: WrittenTurn,
    *,
    substance: int,
    by_holder: bool = True,
) -> None:
    durable_sessions.advance(
        tx,
        session.id,
        last_sequence=written.last_sequence,
        digest=written.digest,
        lease_until=lease_end(tx) if by_holder else session.lease_until,
        has_replayed=by_holder and session.has_replayed,
        reopens=by_holder,
    )
    if by_holder:
        durable_sessions.seen(tx, session.id, substance=substance)
    keep_said(tx, session.id)


def writable(tx: Transaction, body: OfTurn) -> DurableSession:
    """The session that the turn may be written into now. Raises as `held`, and `Conflict` while a turn is journaled."""
    session = held(
        tx,
        body.session,
        body.lease_hash,
        body.directory,
        expected_last_sequence=body.expected_last_sequence,
        must_have_replayed=True,
    )
    # Between a call and its result nobody else speaks: what the journal will write must still fit behind the head.
    if durable_sessions.has_open_turn(tx, session.id):
        raise Conflict(
            "a turn of this session is journaled; end it with a checkpoint, or recover the session"
        )
    return session


def _new_event(index: int, event: TurnEvent) -> NewEvent:
    if event.kind not in WRITABLE:
        known = ", ".join(sorted(WRITABLE))
        raise Invalid(f"events[{index}]: kind is one of {known}; a summary is written by a compaction alone")
    return NewEvent(
        kind=TranscriptKind(event.kind),
        payload_json=msgspec.json.encode(event.payload).decode(),
        assets=tuple(_asset(index, asset) for asset in event.assets),
    )


def _asset(index: int, asset: EventAsset) -> AssetLink:
    if len(asset.sha256) != 32 or asset.bytes < 0:
        raise Invalid(f"events[{index}]: an asset is {{sha256, bytes, kind}} as its upload answered")
    if asset.kind not in set(AssetKind):
        raise Invalid(f"events[{index}]: an asset's kind is one of {', '.join(AssetKind)}")
    return AssetLink(sha256=asset.sha256, bytes=asset.bytes, kind=AssetKind(asset.kind))


def check_turn_bytes(total: int) -> None:
    if total > limits.TURN_MAX_BYTES:
        raise Invalid(
            f"events: a turn has at most {limits.TURN_MAX_BYTES} bytes of payloads; this has {total}"
        )

"""Events of an imported session, in slices, staged past its head until all are here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import msgspec

from memory_core import limits
from memory_core.commands import Answer, command
from memory_core.commands.durable_lease import lease_end, refusing
from memory_core.commands.durable_turns import EventAsset, TurnEvent, check_assets, check_turn, new_events
from memory_core.commands.imported_sessions import coming, lease_of, moment, staged
from memory_core.domain import transcript_digest
from memory_core.domain.command import Refusal
from memory_core.domain.durable_session import DurableSession
from memory_core.domain.json_fields import json_text
from memory_core.domain.session_event import NewEvent, SessionEvent, TranscriptKind
from memory_core.errors import Conflict, Invalid
from memory_core.ids import id_text
from memory_core.store import imports, session_events
from memory_core.store.transaction import Reading, Transaction


@dataclass(frozen=True, kw_only=True)
class ImportedEvent:
    id: bytes
    turn: bytes
    turn_index: int
    turn_size: int
    kind: str
    payload: Any
    created_at: int
    assets: tuple[EventAsset, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ImportEvents:
    """The events behind number `after`, in their order."""

    session: bytes
    after: int
    events: tuple[ImportedEvent, ...]


@command(ImportEvents, name="import_session_events")
@refusing
def take_events(body: ImportEvents, tx: Transaction) -> Answer | Refusal:
    """Answer: `{"staged"}`. `Conflict` with `staged` for other events than the next ones."""
    session = coming(tx, body.session)
    before = staged(tx, session)
    if before != body.after:
        raise Conflict(f"of this session {before} events are here; go on there", detail={"staged": before})
    made = [_event(index, each) for index, each in enumerate(body.events)]
    check_turn(made)
    check_assets(tx, made)
    _check_new(tx, session.id, body.events)
    _write(tx, session, body, made)
    imports.hold(tx, session.id, lease_of(session.id), lease_end(tx))
    return {"staged": before + len(made)}


def _event(index: int, event: ImportedEvent) -> NewEvent:
    if event.kind == TranscriptKind.SUMMARY:
        return NewEvent(kind=TranscriptKind.SUMMARY, payload_json=json_text(event.payload))
    one = TurnEvent(kind=event.kind, payload=event.payload, assets=event.assets)
    try:
        return new_events([one])[0]
    except Invalid as error:
        raise Invalid(str(error).replace("events[0]", f"events[{index}]")) from error


def _write(tx: Transaction, session: DurableSession, body: ImportEvents, made: list[NewEvent]) -> None:
    before = session_events.at(tx, session.id, body.after)
    digest = session.digest if body.after == session.last_sequence else _needed(before).digest
    slice_digests: dict[int, tuple[bytes, bytes]] = {}
    stored: list[SessionEvent] = []
    for sequence, (told, event) in enumerate(zip(body.events, made, strict=True), body.after + 1):
        _check_order(before, told, sequence)
        payload = event.payload_json
        if event.kind is TranscriptKind.SUMMARY:
            payload = _own_source(tx, session.id, payload, slice_digests, sequence)
        digest = transcript_digest.following(
            digest,
            id=told.id,
            sequence=sequence,
            turn_id=told.turn,
            turn_index=told.turn_index,
            turn_size=told.turn_size,
            kind=event.kind.value,
            payload_json=payload,
            created_at=moment("created_at", told.created_at),
        )
        before = SessionEvent(
            id=told.id,
            session_id=session.id,
            sequence=sequence,
            turn_id=told.turn,
            turn_index=told.turn_index,
            turn_size=told.turn_size,
            kind=event.kind,
            payload_json=payload,
            digest=digest,
            created_at=told.created_at,
        )
        slice_digests[sequence] = (told.id, digest)
        stored.append(before)
    session_events.add(tx, stored)
    for event, new in zip(stored, made, strict=True):
        session_events.link(tx, event, new.assets)


def _check_new(read: Reading, session_id: bytes, events: Sequence[ImportedEvent]) -> None:
    """Ids that are somebody's already would fail in the database, and with them whatever else is under way."""
    ids, turns = [event.id for event in events], [event.turn for event in events if event.turn_index == 0]
    if len(set(ids)) < len(ids) or any(imports.event(read, event_id) for event_id in ids):
        raise Conflict("an event has the id of another one")
    if len(set(turns)) < len(turns) or any(imports.has_turn(read, session_id, turn) for turn in turns):
        raise Conflict("a turn has the id of another turn of its session")


def _check_order(before: SessionEvent | None, event: ImportedEvent, sequence: int) -> None:
    is_first = before is None or before.turn_index + 1 == before.turn_size
    wanted = (event.turn, 0, event.turn_size) if is_first else None
    if before is not None and not is_first:
        wanted = (before.turn_id, before.turn_index + 1, before.turn_size)
    if (event.turn, event.turn_index, event.turn_size) != wanted or not (
        0 < event.turn_size <= limits.TURN_EVENTS_MAX
    ):
        raise Invalid(f"event {sequence} is not in its place: turns are whole and follow one another")


def _own_source(
    tx: Transaction,
    session_id: bytes,
    payload_json: str,
    here: Mapping[int, tuple[bytes, bytes]],
    sequence: int,
) -> str:
    """A summary's payload, saying with this database's digest what it stands for."""
    payload = msgspec.json.decode(payload_json)
    told = cast("dict[str, Any]", payload).get("compaction") if isinstance(payload, dict) else None
    through = cast("dict[str, Any]", told).get("through_sequence") if isinstance(told, dict) else None
    if not isinstance(through, int) or not 0 < through < sequence:
        raise Invalid(f"event {sequence} is a summary that does not say what it stands for")
    first, last = (_place(tx, session_id, at, here) for at in (1, through))
    source = {
        "event_count": through,
        "first_event_id": id_text(first[0]),
        "last_event_id": id_text(last[0]),
        "sha256": last[1].hex(),
    }
    known = cast("dict[str, Any]", told)
    named = {"job_id": known.get("job_id"), "through_sequence": through, "source": source}
    return json_text({**cast("dict[str, Any]", payload), "compaction": named})


def _place(
    tx: Transaction, session_id: bytes, sequence: int, here: Mapping[int, tuple[bytes, bytes]]
) -> tuple[bytes, bytes]:
    if sequence in here:
        return here[sequence]
    row = imports.event_at(tx, session_id, sequence)
    if row is None:
        raise Invalid(f"event {sequence} is missing")
    return row["id"], row["digest"]


def _needed(event: SessionEvent | None) -> SessionEvent:
    if event is None:
        raise Invalid("the event before these is missing")
    return event

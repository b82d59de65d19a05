"""Turns of durable sessions over HTTP. One that is more than a command may carry goes to the writer in slices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from flask import Blueprint, Response, request

from memory_core import limits
from memory_core.commands.durable_staging import PublishTurn, StageTurn
from memory_core.commands.durable_turns import AppendTurn, EventAsset, TurnEvent
from memory_core.errors import Invalid
from memory_core.ids import id_bytes
from web import leftovers
from web.answers import submitted
from web.auth import current, needs
from web.bodies import read_as
from web.calls import CallContext
from web.durable import DEPTH_MAX, Here, digest_of, measured, own_lease, small
from web.parts import Parts


class Asset(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    sha256: str
    bytes: int
    kind: str = "other"


class Event(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    kind: str
    payload: Any
    assets: list[Asset] = []


class Turn(Here, kw_only=True):
    expected_last_sequence: int
    events: list[Event]


class Slice(Turn, kw_only=True):
    turn_size: int
    first_index: int
    #: As the slice at 0 was answered.
    turn_id: str | None = None


class Publish(Here, kw_only=True):
    expected_last_sequence: int
    turn_size: int
    turn_id: str


def blueprint(parts: Parts) -> Blueprint:
    routes = Blueprint("durable_turns", __name__, url_prefix="/api/v1/durable-sessions")

    @routes.post("/<text>/turns")
    @needs("write")
    def _append(text: str) -> Response:
        asked = read_as(Turn, limits.REQUEST_BODY_MAX_BYTES, DEPTH_MAX)
        events, sizes = checked_events(asked.events)
        head = _head(parts, text, asked)
        context = parts.context(current(), request.environ)
        clean = parts.gate.cleaned(AppendTurn(**head, events=events))
        leftovers.clear(parts, head["session"], head["lease_hash"])
        redacted = _redacted(events, clean.events)
        slices = list(_slices(sizes))
        if len(slices) == 1:
            answer = context.submit_cleaned(AppendTurn(**head, events=events), clean)
        else:
            answer = _in_slices(context, head, events, clean.events, slices)
        return submitted(answer if answer.get("status") == "pending" else {**answer, "redacted": redacted})

    @routes.post("/<text>/turns/staged")
    @needs("write")
    def _stage(text: str) -> Response:
        asked = read_as(Slice, limits.REQUEST_BODY_MAX_BYTES, DEPTH_MAX)
        events, sizes = checked_events(asked.events)
        if len(list(_slices(sizes))) != 1:
            raise Invalid(
                f"events: a slice has at most {limits.TURN_SLICE_EVENTS_MAX} events and {limits.TURN_SLICE_MAX_BYTES} bytes,"
                " or is a single event"
            )
        if (asked.turn_id is None) != (asked.first_index == 0):
            raise Invalid(
                "turn_id: the slice at 0 begins a turn and names none; every other one names it as that was answered"
            )
        head = _head(parts, text, asked)
        if asked.first_index == 0:
            leftovers.clear(parts, head["session"], head["lease_hash"])
        command = StageTurn(
            **head,
            turn_size=asked.turn_size,
            first_index=asked.first_index,
            events=events,
            turn=None if asked.turn_id is None else id_bytes(asked.turn_id),
        )
        clean = parts.gate.cleaned(command)
        answer = parts.context(current(), request.environ).submit_cleaned(command, clean)
        if answer.get("status") == "pending":
            return submitted(answer)
        redacted = [asked.first_index + index for index in _redacted(events, clean.events)]
        return submitted({**answer, "redacted": redacted})

    @routes.post("/<text>/turns/staged/publish")
    @needs("write")
    def _publish(text: str) -> Response:
        asked = small(Publish)
        command = PublishTurn(
            **_head(parts, text, asked), turn_size=asked.turn_size, turn=id_bytes(asked.turn_id)
        )
        return submitted(parts.context(current(), request.environ).submit(command))

    return routes


def checked_events(events: Sequence[Event]) -> tuple[tuple[TurnEvent, ...], list[int]]:
    """Events as commands carry them, and the bytes of their payloads. Raises `Invalid`."""
    if not 0 < len(events) <= limits.TURN_EVENTS_MAX:
        raise Invalid(f"events: a turn has 1 to {limits.TURN_EVENTS_MAX} events")
    sizes: list[int] = []
    left = limits.TURN_MAX_BYTES
    for index, event in enumerate(events):
        what = f"events[{index}]: its payload"
        size = measured(what, event.payload, limits.EVENT_PAYLOAD_MAX_BYTES)
        left -= size
        if left < 0:
            raise Invalid(f"events: a turn has at most {limits.TURN_MAX_BYTES} bytes of payloads")
        sizes.append(size)
    made = tuple(
        TurnEvent(kind=event.kind, payload=event.payload, assets=tuple(_asset(a) for a in event.assets))
        for event in events
    )
    return made, sizes


def _asset(asset: Asset) -> EventAsset:
    return EventAsset(sha256=digest_of(asset.sha256), bytes=asset.bytes, kind=asset.kind)


def _head(parts: Parts, text: str, asked: Any) -> dict[str, Any]:
    return {
        "session": id_bytes(text),
        "lease_hash": own_lease(),
        "directory": asked.directory.id(parts),
        "expected_last_sequence": asked.expected_last_sequence,
    }


def _redacted(events: Sequence[TurnEvent], clean: Sequence[TurnEvent]) -> list[int]:
    """Indices of events that are not kept as they were sent."""
    return [
        index
        for index, (sent, kept) in enumerate(zip(events, clean, strict=True))
        if sent.payload != kept.payload
    ]


def _slices(sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Ranges of events that one command may carry."""
    start = total = 0
    for index, size in enumerate(sizes):
        is_full = index - start >= limits.TURN_SLICE_EVENTS_MAX or total + size > limits.TURN_SLICE_MAX_BYTES
        if index > start and is_full:
            yield start, index
            start, total = index, 0
        total += size
    yield start, len(sizes)


def _in_slices(
    context: CallContext,
    head: dict[str, Any],
    events: Sequence[TurnEvent],
    clean: Sequence[TurnEvent],
    slices: Sequence[tuple[int, int]],
) -> Mapping[str, Any]:
    """Stage all and publish. Each command's id follows from the caller's key, so the whole can be sent again."""
    turn: bytes | None = None
    for start, end in slices:
        of_slice = {**head, "turn_size": len(events), "first_index": start, "turn": turn}
        answer = context.submit_cleaned(
            StageTurn(**of_slice, events=tuple(events[start:end])),
            StageTurn(**of_slice, events=tuple(clean[start:end])),
        )
        if answer.get("status") == "pending":
            return answer
        turn = id_bytes(answer["turn_id"])
    return context.submit(PublishTurn(**head, turn_size=len(events), turn=turn))

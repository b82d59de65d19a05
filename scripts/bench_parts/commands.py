"""Commands as the gate makes them, without a gate: to fill the writer queue faster than HTTP could."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

from memory_core import bootstrap
from memory_core.clock import SystemClock
from memory_core.commands import encode, kind_of
from memory_core.domain.command import Envelope
from memory_core.ids import IdSource
from scripts.bench_parts.texts import Events
from web.auth import Caller
from web.events import envelope_of, load_clients

_OWNER = Caller(principal="owner", scope="admin")


class _GateWithoutQueue:
    """What `web.events` needs of a gate: the texts here are invented and hold no secrets."""

    hash_key = b"bench"

    def __init__(self) -> None:
        self.clock = SystemClock()
        self.ids = IdSource(self.clock)

    def redact(self, value: Any) -> Any:
        return value

    def envelope(self, command: object, command_id: Any, caller: Caller, **more: Any) -> Envelope:
        kind = kind_of(command)
        more["body_hash"] = more.pop("received_hash")
        return Envelope(
            id=command_id.value,
            is_foreign=command_id.is_foreign,
            name=kind.name,
            version=kind.version,
            body=encode(command),
            principal=caller.principal,
            token_scope=caller.scope,
            recorded_at=self.clock.now_us(),
            **more,
        )


def envelopes_of(events: Events, numbers: Sequence[int]) -> list[Envelope]:
    """One command per event."""
    bootstrap.load_commands()
    load_clients()
    gate: Any = _GateWithoutQueue()
    query = {"agent": "claude-code"}
    return [envelope_of(gate, events.payload(number), query, _OWNER, wants_reply=False) for number in numbers]


def envelope(command: object) -> Envelope:
    """Any command on its way, under an id of its own."""
    gate = _GateWithoutQueue()
    body = encode(command)
    kind = kind_of(command)
    return Envelope(
        id=gate.ids.new(),
        name=kind.name,
        version=kind.version,
        body=body,
        body_hash=blake2b(body, digest_size=16).digest(),
        principal=_OWNER.principal,
        token_scope=_OWNER.scope,
        recorded_at=gate.clock.now_us(),
    )

"""A durable session as anybody would draw it, and its events in a few words: what its state machine compares with."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from memory_core.domain import audit_event
from memory_core.domain.audit_event import ModelCompleted, ModelStarted, TurnCompleted
from memory_core.domain.directory import Directory
from memory_core.domain.session_event import SessionEvent
from memory_core.store.database import Database
from tests.durable.directly import Holder
from web.replay import Replay


@dataclass
class Model:
    """Its events in the words of `told`, its lease, and what is under way."""

    events: list[str] = field(default_factory=list)
    #: Sequences at which a turn ends.
    ends: list[int] = field(default_factory=list)
    #: Who claimed last, by person and claim; None: nobody, or it was given back.
    holder: tuple[int, int] | None = None
    until: float = 0.0
    has_replayed: bool = False
    title: str | None = None
    is_deleted: bool = False
    #: The input of the turn that is journaled.
    open_turn: str | None = None
    #: Boundaries of compactions: the one that waits or runs, and all that there were.
    compacting: int | None = None
    boundaries: list[int] = field(default_factory=list)
    #: What the last completed one covers, and where its summary stands.
    covered: int = 0
    summary_at: int = 0
    #: Until when a worker has the compaction; None: it waits.
    worker_until: float | None = None

    def ended(self, answer: str) -> None:
        """The open turn, with that answer."""
        audit = ("audit model_started", "audit model_completed", "audit turn_completed")
        self.wrote(f"user_message {self.open_turn}", *audit, f"assistant_message {answer}")
        self.open_turn = None

    def check_replay(self, replay: Replay) -> bytes:
        """Summary first, then what it does not cover, and all of it; the digest at its end."""
        head = json.loads(replay.head)["head"]
        *lines, last = [json.loads(line) for line in replay.lines()]
        events, end = [line["event"] for line in lines], last["end"]
        wanted = list(enumerate(self.events, 1))
        if self.covered:
            summary = wanted[self.summary_at - 1]
            wanted = [summary, *(each for each in wanted[self.covered :] if each is not summary)]
        assert head["compacted_through"] == (self.covered or None)
        assert [(e["sequence"], told(e["kind"], e["payload"])) for e in events] == wanted
        assert end["last_sequence"] == len(self.events)
        return bytes.fromhex(end["digest"])

    def wrote(self, *texts: str) -> None:
        self.events += texts
        self.ends.append(len(self.events))


def told(kind: str, value: Any) -> str:
    """An event in a few words: what was said, or what kind of record it is."""
    if "text" in value:
        return f"{kind} {value['text']}"
    if kind == "summary":
        return f"summary to {value['compaction']['through_sequence']}"
    if kind == "audit":
        return f"audit {value['event']['type']}"
    return f"{kind} {value['content'][0]['data']}" if "content" in value else f"{kind} {value['record']}"


def of(event: SessionEvent) -> str:
    return told(event.kind.value, json.loads(event.payload_json))


def ending(turn: str) -> list[dict[str, Any]]:
    """The audit of a turn of one round without tools."""
    spoken = (
        ModelStarted(turn_id=turn, round=1),
        ModelCompleted(turn_id=turn, round=1, finish_reason="stop"),
        TurnCompleted(turn_id=turn, model_rounds=1),
    )
    return [audit_event.payload(event) for event in spoken]


def replay_of(person: Holder, place: Directory) -> Replay:
    """A replay as that person asks for it. Raises as it does."""
    return Replay(
        Database(person.store.path),
        person.store.clock,
        session_id=person.session,
        principal="ada",
        lease_hash=person.lease,
        directory=place,
    )

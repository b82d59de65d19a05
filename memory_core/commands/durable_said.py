"""What was said in durable sessions, kept as turns too, so that search finds it as it finds what hooks told.

The exact events stay what they are. Turns are made of them in slices: of what a turn wrote at once, and of the rest (a long turn, an
import, what was written before there were such turns) by the writer of its own accord.
"""

from __future__ import annotations

from typing import Any, Final

from memory_core import limits
from memory_core.commands.observing import observation_row
from memory_core.domain import capture
from memory_core.domain.event import EventKind, HookEvent, Speaker
from memory_core.domain.excerpt import TranscriptReader, Voice
from memory_core.domain.session_event import SessionEvent
from memory_core.ids import id_text
from memory_core.store import durable_said, session_events
from memory_core.store.statement import Row
from memory_core.store.transaction import Transaction

#: Where such an observation comes from, as against the hooks of a client.
SOURCE: Final = "durable"
_SAID: Final = {
    Voice.PROMPT: (EventKind.USER_PROMPT, Speaker.USER),
    Voice.ANSWER: (EventKind.STOP, Speaker.AGENT),
}


def keep_said(tx: Transaction, session_id: bytes) -> int:
    """Make turns of the session's next events, a slice of them; how many events that were."""
    place = durable_said.place(tx, session_id)
    if place is None:
        return 0
    events, through = session_events.spoken(
        tx,
        session_id,
        after=place["turns_through"],
        through=place["last_sequence"],
        limit=limits.SAID_SLICE_EVENTS,
        max_bytes=limits.SAID_SLICE_BYTES,
    )
    reader = TranscriptReader()
    rows = [row for event in events for row in _rows(reader, event, place)]
    durable_said.add(tx, session_id, rows, through=through)
    return through - place["turns_through"]


def keep_next(tx: Transaction) -> int:
    """The same for some session that needs it."""
    session_id = durable_said.next_behind(tx)
    return 0 if session_id is None else keep_said(tx, session_id)


def _rows(reader: TranscriptReader, event: SessionEvent, place: Row) -> list[dict[str, Any]]:
    """At most one: an event says one thing."""
    return [
        _row(event, kind, speaker, excerpt.text, place)
        for excerpt in reader.read(event.sequence, event.kind.value, event.payload_json)
        if excerpt.voice in _SAID and excerpt.text.strip()
        for kind, speaker in (_SAID[excerpt.voice],)
    ]


def _row(event: SessionEvent, kind: EventKind, speaker: Speaker, text: str, place: Row) -> dict[str, Any]:
    told = capture.capped(
        HookEvent(
            client=SOURCE,
            source_event=event.kind.value,
            kind=kind,
            session_key=id_text(event.session_id),
            speaker=speaker,
            body=text,
            unique_id=id_text(event.id),
        )
    )
    return observation_row(
        told,
        # Its hit names the event by that.
        id=event.id,
        project_id=place["project_id"],
        owner=place["owner"],
        token_scope=place["token_scope"],
        session_id=event.session_id,
        twin_hash=capture.twin_hash(told),
        source=SOURCE,
        recorded_at=event.created_at,
    )

"""Reading the transcript of a durable session for a summary or for knowledge: verified, and the part of it that fits."""

from __future__ import annotations

from dataclasses import dataclass

from memory_core import limits
from memory_core.domain.excerpt import Excerpt, TranscriptReader
from memory_core.domain.transcript_digest import Verifier
from memory_core.domain.transcript_window import TranscriptWindow
from memory_core.errors import Corrupt
from memory_core.store import session_events
from memory_core.store.transaction import Reading


@dataclass(frozen=True, kw_only=True)
class Part:
    """Events of a session with `after` < sequence ≤ `through`, and the transcript's digest at both ends (of the beginning: None)."""

    session_id: bytes
    through: int
    digest: bytes
    after: int = 0
    digest_before: bytes | None = None


@dataclass(frozen=True, kw_only=True)
class Source:
    """What was said in a part of a transcript, in its order."""

    excerpts: tuple[Excerpt, ...]
    #: Of the payloads that it stands for.
    size_bytes: int
    #: Utterances that did not fit, and events that were too many to be read.
    left_out: int = 0


def read_part(reading: Reading, part: Part, *, first: tuple[Excerpt, ...] = ()) -> Source:
    """The part as excerpts, behind `first` (an earlier summary). Raises `Corrupt` unless the events are those that were written.

    Of a part that is larger than a replay may be, the end is read.
    """
    count, size = session_events.total(reading, part.session_id, after=part.after, through=part.through)
    begun = _beginning(reading, part, count, size)
    reader, window = TranscriptReader(), TranscriptWindow(limits.TRANSCRIPT_WINDOW_MAX_BYTES)
    window.add(first)
    verifier = Verifier(part.session_id, after=begun.after, digest=begun.digest_before)
    while verifier.sequence < part.through:
        events = session_events.between(
            reading,
            part.session_id,
            after=verifier.sequence,
            through=part.through,
            limit=limits.TRANSCRIPT_PAGE_EVENTS,
            max_bytes=limits.REPLAY_BATCH_BYTES,
        )
        if not events:
            raise Corrupt(f"event {verifier.sequence + 1} of the session is missing")
        for event in events:
            verifier.feed(event)
            window.add(reader.read(event.sequence, event.kind.value, event.payload_json))
    verifier.end(last_sequence=part.through, digest=part.digest)
    excerpts = window.excerpts()
    return Source(excerpts=excerpts, size_bytes=size, left_out=window.left_out + begun.after - part.after)


def _beginning(reading: Reading, part: Part, count: int, size: int) -> Part:
    """Where to begin to read, so that it is not too much: at a turn."""
    if count <= limits.REPLAY_EVENTS_MAX and size <= limits.REPLAY_MAX_BYTES:
        return part
    low, high = max(part.after, part.through - limits.REPLAY_EVENTS_MAX), part.through
    while low < high:
        middle = (low + high) // 2
        _, rest = session_events.total(reading, part.session_id, after=middle, through=part.through)
        low, high = (low, middle) if rest <= limits.REPLAY_MAX_BYTES else (middle + 1, high)
    event = session_events.at(reading, part.session_id, low)
    if event is not None and event.turn_index + 1 < event.turn_size:
        last = event.sequence + event.turn_size - event.turn_index - 1
        event = session_events.at(reading, part.session_id, last)
    if event is None:
        raise Corrupt(f"event {low} of the session is missing")
    return Part(
        session_id=part.session_id,
        through=part.through,
        digest=part.digest,
        after=event.sequence,
        digest_before=event.digest,
    )

"""Events of a durable session, and how they make turns."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from memory_core import limits
from memory_core.domain.agent_message import AssetKind
from memory_core.errors import Corrupt


class TranscriptKind(StrEnum):
    """What an event is; the shape of its payload follows from it."""

    SYSTEM = "system"
    USER_MESSAGE = "user_message"
    ASSISTANT_MESSAGE = "assistant_message"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"
    APPROVAL = "approval"
    AUDIT = "audit"
    #: What a compaction made of the events before it; written by its job alone.
    SUMMARY = "summary"
    ERROR = "error"


#: What a client may write.
WRITABLE: Final = frozenset(TranscriptKind) - {TranscriptKind.SUMMARY}


@dataclass(frozen=True, kw_only=True)
class AssetLink:
    """A file that an event refers to: its digest (32 bytes), size in bytes, and what it is there."""

    sha256: bytes
    bytes: int
    kind: AssetKind


@dataclass(frozen=True, kw_only=True)
class NewEvent:
    """An event that is to be written: its payload as JSON text, and the assets it refers to in their order."""

    kind: TranscriptKind
    payload_json: str
    assets: tuple[AssetLink, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SessionEvent:
    """A stored event. `digest` is that of the transcript up to it; `created_at` is UTC microseconds."""

    id: bytes
    session_id: bytes
    sequence: int
    turn_id: bytes
    turn_index: int
    turn_size: int
    kind: TranscriptKind
    payload_json: str
    digest: bytes
    created_at: int


class TurnOrder:
    """Whether events, fed in their order, are whole turns without a gap: each consecutive, of one id and size, from index 0."""

    def __init__(self, after: int = 0) -> None:
        """`after`: the sequence of the event before the first."""
        self._sequence: int = after
        self._turn_id: bytes = b""
        self._size: int = 0
        self._next: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether no turn is open."""
        return self._next == self._size

    def feed(self, event: SessionEvent) -> None:
        """Raises `Corrupt`."""
        if event.sequence != self._sequence + 1:
            raise Corrupt(f"event {self._sequence + 1} of the session is missing")
        if self.is_whole:
            if event.turn_index != 0 or not 1 <= event.turn_size <= limits.TURN_EVENTS_MAX:
                raise Corrupt(f"event {event.sequence} of the session begins in the middle of a turn")
            self._turn_id, self._size, self._next = event.turn_id, event.turn_size, 0
        elif (event.turn_id, event.turn_size, event.turn_index) != (self._turn_id, self._size, self._next):
            raise Corrupt(f"event {event.sequence} of the session interrupts a turn")
        self._sequence, self._next = event.sequence, self._next + 1

    def end(self) -> None:
        """Raises `Corrupt` where the last turn is not whole."""
        if not self.is_whole:
            raise Corrupt(f"the session ends in the middle of a turn, at event {self._sequence}")

"""The digest of a transcript: d₀ = SHA-256(domain ‖ session), dₙ = SHA-256(dₙ₋₁ ‖ eventₙ).

Each event's row keeps the digest up to it, so writing one costs one hash whatever came before, and reading finds a row that was
changed, left out or put in. Texts and ids are hashed with their length (8 bytes, big-endian) before them, numbers as 8 bytes.
"""

from __future__ import annotations

import hashlib
from typing import Final

from memory_core.domain.session_event import SessionEvent, TurnOrder
from memory_core.errors import Corrupt

DOMAIN: Final = b"memoryd/session-transcript/v1"


def start(session_id: bytes) -> bytes:
    """Of a transcript without events."""
    return hashlib.sha256(_with_length(DOMAIN) + _with_length(session_id)).digest()


def following(
    before: bytes,
    *,
    id: bytes,
    sequence: int,
    turn_id: bytes,
    turn_index: int,
    turn_size: int,
    kind: str,
    payload_json: str,
    created_at: int,
) -> bytes:
    """Of a transcript with this event more."""
    digest = hashlib.sha256(before)
    digest.update(_number(sequence) + _with_length(id) + _with_length(turn_id))
    digest.update(_number(turn_index) + _number(turn_size) + _with_length(kind.encode()))
    payload = payload_json.encode()
    digest.update(_number(len(payload)))
    digest.update(payload)
    digest.update(_number(created_at))
    return digest.digest()


class Verifier:
    """Events of a session, fed in their order from the one after `after`, are whole turns and hash to what is stored."""

    def __init__(self, session_id: bytes, *, after: int = 0, digest: bytes | None = None) -> None:
        """`digest` is that of the transcript at `after`; needed where `after` is not 0."""
        self.sequence = after
        self.digest = start(session_id) if digest is None else digest
        self._session_id = session_id
        self._order = TurnOrder(after)

    def feed(self, event: SessionEvent) -> None:
        """Raises `Corrupt`."""
        self._order.feed(event)
        digest = following(
            self.digest,
            id=event.id,
            sequence=event.sequence,
            turn_id=event.turn_id,
            turn_index=event.turn_index,
            turn_size=event.turn_size,
            kind=event.kind.value,
            payload_json=event.payload_json,
            created_at=event.created_at,
        )
        if event.session_id != self._session_id or digest != event.digest:
            raise Corrupt(f"event {event.sequence} of the session is not what was written")
        self.digest, self.sequence = digest, event.sequence

    @property
    def is_whole(self) -> bool:
        """Whether what was fed ends with a turn."""
        return self._order.is_whole

    def end(self, *, last_sequence: int, digest: bytes) -> None:
        """Raises `Corrupt` unless that is where and what the transcript ends with."""
        self._order.end()
        if (self.sequence, self.digest) != (last_sequence, digest):
            raise Corrupt("the session's events are not those that its head tells of")


def _with_length(data: bytes) -> bytes:
    return _number(len(data)) + data


def _number(value: int) -> bytes:
    return value.to_bytes(8, "big")

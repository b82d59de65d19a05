"""The older program's digest of a transcript, and whether events are the turns that they say.

SHA-256 of: domain, session, the number of events (8 bytes), and of each event its sequence, id, turn, index, size, kind, payload and
time as they are stored. Texts have their length (8 bytes, big-endian) before them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final

from client.emelex.tables import Row
from client.emelex.values import id_of, number_of, text_of
from memory_core import limits
from memory_core.errors import Corrupt

_DOMAIN: Final = b"emelex/session-transcript/v1"


class Transcript:
    """Fed with the events of one session in their order; tells the digests up to the sequences that were asked for."""

    def __init__(self, session_id: str, boundaries: Iterable[int]) -> None:
        self.sequence = 0
        self.digests: dict[int, str] = {}
        #: Ids of the events that end where somebody asked, and of the first one.
        self.ids: dict[int, str] = {}
        self._asked = {
            through: hashlib.sha256(_text(_DOMAIN) + _text(session_id.encode()) + _number(through))
            for through in boundaries
        }
        self._turn = ("", 0)
        self._next = 0
        self._seen: set[str] = set()

    @property
    def ends_turn(self) -> bool:
        return self._next == self._turn[1]

    def feed(self, row: Row) -> None:
        """Raises `Corrupt`."""
        self._check_order(row)
        if self.sequence == 1 or self.sequence in self._asked:
            self.ids[self.sequence] = id_of(row)
        if not self._asked:
            return
        data = _event(row)
        for through in sorted(self._asked):
            self._asked[through].update(data)
        digest = self._asked.pop(self.sequence, None)
        if digest is not None:
            if not self.ends_turn:
                raise Corrupt(f"a job ends with event {self.sequence}, which does not end its turn")
            self.digests[self.sequence] = digest.hexdigest()

    def end(self) -> None:
        """Raises `Corrupt` for a turn without its end."""
        if not self.ends_turn:
            raise Corrupt(f"event {self.sequence} does not end its turn")

    def _check_order(self, row: Row) -> None:
        sequence = number_of(row, "sequence", at_least=1)
        if sequence != self.sequence + 1:
            raise Corrupt(f"event {self.sequence + 1} is missing")
        turn = (id_of(row, "turn_id"), number_of(row, "turn_size", at_least=1))
        index = number_of(row, "turn_index")
        if self.ends_turn:
            self._begin(turn, sequence)
        if (turn, index) != (self._turn, self._next):
            raise Corrupt(f"event {sequence} is not in its turn")
        self.sequence, self._next = sequence, self._next + 1

    def _begin(self, turn: tuple[str, int], sequence: int) -> None:
        if turn[0] in self._seen or turn[1] > limits.TURN_EVENTS_MAX:
            raise Corrupt(f"event {sequence} begins a turn that was there before, or is too long")
        self._seen.add(turn[0])
        self._turn, self._next = turn, 0


def _event(row: Row) -> bytes:
    return b"".join(
        (
            _number(number_of(row, "sequence")),
            _text(text_of(row, "id").encode()),
            _text(text_of(row, "turn_id").encode()),
            _number(number_of(row, "turn_index")),
            _number(number_of(row, "turn_size")),
            _text(text_of(row, "kind").encode()),
            _text(text_of(row, "payload_json").encode()),
            _text(text_of(row, "created_at").encode()),
        )
    )


def _text(data: bytes) -> bytes:
    return _number(len(data)) + data


def _number(value: int) -> bytes:
    return value.to_bytes(8, "big")

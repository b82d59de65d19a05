"""Identifiers: UUIDv7 as 16 bytes inside, hyphenated text outside."""

from __future__ import annotations

import os
import threading
import uuid
from functools import lru_cache

from memory_core.clock import Clock
from memory_core.errors import Invalid

_NAMESPACE_SESSION = uuid.NAMESPACE_OID


class IdSource:
    """Makes UUIDv7 values (RFC 9562, section 5.7) that sort in the order of their making.

    The 12 bits after the version hold a counter, so that ids made within one millisecond keep
    their order; a wall clock that steps back does not make ids step back.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._last = 0

    def new(self) -> bytes:
        """A new id, 16 bytes, greater than each id made before by this source."""
        stamp = (self._clock.now_us() // 1000) << 12
        with self._lock:
            self._last = max(stamp, self._last + 1)
            value = self._last
        high = (value >> 12) << 16 | 0x7000 | (value & 0xFFF)
        low = int.from_bytes(os.urandom(8), "big") & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000
        return (high << 64 | low).to_bytes(16, "big")


def id_text(value: bytes) -> str:
    return str(uuid.UUID(bytes=value))


def id_bytes(text: str) -> bytes:
    """The 16 bytes of a UUID in text form; `Invalid` if it is none."""
    try:
        return uuid.UUID(text).bytes
    except ValueError as error:
        raise Invalid(f"not an id: {text[:64]!r}; an id is the whole UUID, as a list shows it") from error


@lru_cache(maxsize=1_024)
def session_id_from(vendor_id: str) -> bytes:
    """A session's id: a vendor's UUID as it is, any other text by UUIDv5 (namespace OID)."""
    try:
        return uuid.UUID(vendor_id).bytes
    except ValueError:
        return uuid.uuid5(_NAMESPACE_SESSION, vendor_id).bytes

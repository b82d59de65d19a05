"""The marker that stands where a secret stood: `[REDACTED:kind:xxxx]`."""

from __future__ import annotations

from memory_core.redaction.lazy import lazy_pattern

#: Kind of the marker that replaces a text which could not be scanned.
UNSCANNED = "unscanned"

PATTERN = lazy_pattern(rb"\[REDACTED:[a-z0-9_]{1,40}:[0-9a-f]{4}\]")


def marker(kind: str, value: bytes, key: bytes) -> bytes:
    """`[REDACTED:kind:xxxx]`; xxxx is the start of HMAC-SHA256(key, value).

    Equal secrets get equal markers under one key, so they can be linked but not read: 16 bits
    are too few to confirm a guess, and the key is not stored beside the text.
    """
    import hmac  # costs milliseconds at start-up, and most texts hold no secret

    return b"[REDACTED:%s:%s]" % (kind.encode(), hmac.digest(key, value, "sha256")[:2].hex().encode())


def spans(data: bytes) -> list[tuple[int, int]]:
    """Where markers already stand."""
    if b"[REDACTED:" not in data:
        return []
    return [match.span() for match in PATTERN.finditer(data)]

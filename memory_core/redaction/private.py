"""`<private>…</private>`: what a person marked is dropped, tags and all."""

from __future__ import annotations

import re

from memory_core.redaction.lazy import lazy_pattern

_ROUNDS_MAX = 8
_TAG = lazy_pattern(rb"<(/?)private[ \t]{0,16}>", re.IGNORECASE)


def drop_private(data: bytes) -> tuple[bytes, int]:
    """The text without its private parts, and how many were dropped.

    Tags nest. An opening tag without its end drops all that follows, because where the private
    part should have ended is not known. A closing tag alone is left as it is. Dropping a part can
    bring the halves of another tag together, so it is done again until no opening tag is left;
    whoever nests halves deeper than that loses the rest of the text.
    """
    dropped = 0
    for _ in range(_ROUNDS_MAX):
        data, found = _drop_once(data)
        if not found:
            return data, dropped
        dropped += found
    first = next((tag.start() for tag in _TAG.finditer(data) if not tag.group(1)), len(data))
    return data[:first], dropped


def _drop_once(data: bytes) -> tuple[bytes, int]:
    if b"<" not in data:
        return data, 0
    pieces: list[bytes] = []
    depth = found = start = 0
    for tag in _TAG.finditer(data):
        is_end = bool(tag.group(1))
        if not is_end:
            if depth == 0:
                pieces.append(data[start : tag.start()])
                found += 1
            depth += 1
        elif depth:
            depth -= 1
            if depth == 0:
                start = tag.end()
    if depth == 0:
        pieces.append(data[start:])
    return b"".join(pieces), found

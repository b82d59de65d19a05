"""Knowledge that is given unasked: the settings that bound it, and the fenced section that an agent is shown."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from memory_core import config, limits
from memory_core.clock import rfc3339
from memory_core.domain import recalled
from memory_core.domain.knowledge import RecallBounds
from memory_core.errors import Invalid
from memory_core.store import knowledge_lists
from memory_core.store.knowledge import Entry
from memory_core.store.knowledge_lists import Scope
from memory_core.store.transaction import Reading

_SECTION: Final = "memory"
#: What `[memory]` says of recall.
KEYS: Final = ("recall_entries", "recall_bytes", "confidence_threshold")
_HEADING = "### What is known here\n\n"


def read_bounds(settings: config.Settings, environ: Mapping[str, str] | None = None) -> RecallBounds:
    """The bounds of `[memory]`, or of its variables. Raises `Invalid` that names the key."""
    told = config.section(settings, _SECTION, environ)
    if unknown := sorted(set(told) - set(KEYS)):
        raise Invalid(f"[{_SECTION}] has no key {', '.join(unknown)}; there are: {', '.join(KEYS)}")
    usual = RecallBounds()
    return RecallBounds(
        entries=_whole(told, "recall_entries", usual.entries, limits.RECALL_ENTRIES_MAX),
        size_bytes=_whole(told, "recall_bytes", usual.size_bytes, limits.RECALL_BYTES_MAX),
        confidence=_share(told, "confidence_threshold", usual.confidence),
    )


def bounds_said(entries: str | None, size_bytes: str | None, confidence: str | None) -> RecallBounds:
    """What a client or a directory's marker wishes, to tighten what is set. What makes no sense wishes for nothing at all."""
    least = _said_share(confidence)
    return RecallBounds(
        entries=0 if least is None else _said_whole(entries, limits.RECALL_ENTRIES_MAX),
        size_bytes=_said_whole(size_bytes, limits.RECALL_BYTES_MAX),
        confidence=least or 0.0,
    )


def check_said(entries: str | None, size_bytes: str | None, confidence: str | None) -> None:
    """Raises `Invalid` for what `bounds_said` can make no sense of, or that is out of range: for those who ask and read the answer."""
    for name, text in (("entries", entries), ("bytes", size_bytes)):
        if text is not None and not (text.isascii() and text.isdigit() and len(text) < 10):
            raise Invalid(f"{name}: a whole number, not {text[:64]!r}")
    if confidence is not None and _said_share(confidence) is None:
        raise Invalid(f"confidence: a number from 0 to 1, not {confidence[:64]!r}")


def section(entries: list[Entry], source: str) -> str:
    """A fenced JSON array of {key, content}; empty where nothing is known. `source` says where it comes from."""
    if not entries:
        return ""
    items = ",".join(knowledge_lists.recall_item(entry) for entry in entries)
    return recalled.fence(f"{_HEADING}[{items}]", f"knowledge of {source}")


def recalled_section(reading: Reading, scope: Scope, bounds: RecallBounds, *, now: int, name: str) -> str:
    """What is known in a scope and is sure enough, as a session that starts there is told it."""
    return section(knowledge_lists.recalled(reading, scope, bounds, now=now), f"{name}, {rfc3339(now)}")


def frame_bytes(name: str, now: int) -> int:
    """What the fence around a section takes besides its items."""
    return len(recalled.fence(_HEADING, f"knowledge of {name}, {rfc3339(now)}").encode())


def _whole(told: Mapping[str, Any], key: str, usual: int, most: int) -> int:
    value = told.get(key, usual)
    number = _said_whole(str(value), most) if not isinstance(value, bool) else -1
    if str(number) != str(value).strip() or number < 1:
        raise Invalid(f"[{_SECTION}] {key} is a whole number from 1 to {most}")
    return number


def _share(told: Mapping[str, Any], key: str, usual: float) -> float:
    value = told.get(key, usual)
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not 0 <= number <= 1:
        raise Invalid(f"[{_SECTION}] {key} is a number from 0 to 1")
    return number


def _said_whole(text: str | None, most: int) -> int:
    if text is None:
        return most
    plain = text.strip()
    return min(int(plain), most) if plain.isascii() and plain.isdigit() and len(plain) < 10 else 0


def _said_share(text: str | None) -> float | None:
    """None for what is no number from 0 to 1."""
    try:
        number = float(text or 0)
    except ValueError:
        return None
    return number if 0 <= number <= 1 else None

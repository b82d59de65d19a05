"""What is to be known of a session: candidates, each a fact under its key or the end of one. Strict about their form."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from memory_core import limits
from memory_core.errors import Invalid

#: The two actions, as they are written.
UPSERT: Final = "upsert"
TOMBSTONE: Final = "tombstone"
_UPSERT_FIELDS: Final = frozenset(("action", "key", "content", "confidence", "pinned"))
_TOMBSTONE_FIELDS: Final = {"action", "key", "confidence"}


@dataclass(frozen=True, kw_only=True)
class Upsert:
    """A fact, or a new version of one. Raises `Invalid` past a bound."""

    key: str
    content: str
    confidence: float
    pinned: bool = False

    def __post_init__(self) -> None:
        _check_text("key", self.key, limits.KNOWLEDGE_KEY_MAX_BYTES)
        _check_text("content", self.content, limits.KNOWLEDGE_CONTENT_MAX_BYTES)
        _check_confidence(self.confidence)


@dataclass(frozen=True, kw_only=True)
class Tombstone:
    """A fact that holds no more. Raises `Invalid` past a bound."""

    key: str
    confidence: float

    def __post_init__(self) -> None:
        _check_text("key", self.key, limits.KNOWLEDGE_KEY_MAX_BYTES)
        _check_confidence(self.confidence)


Candidate = Upsert | Tombstone


def read_candidates(value: Any) -> tuple[Candidate, ...]:
    """The candidates of `{"candidates": [...]}`, each tagged by its `action`. Raises `Invalid` for anything else."""
    if not isinstance(value, Mapping):
        raise Invalid("candidates: expected an object")
    outer = cast("Mapping[Any, Any]", value)
    if set(outer) != {"candidates"}:
        raise Invalid("candidates: the object has the field candidates and no other")
    items = outer["candidates"]
    if not isinstance(items, list | tuple):
        raise Invalid("candidates: expected a list")
    some = cast("Sequence[Any]", items)
    if len(some) > limits.DISTILLATION_CANDIDATES_MAX:
        raise Invalid(f"candidates: at most {limits.DISTILLATION_CANDIDATES_MAX}")
    return checked(tuple(_candidate(item, at) for at, item in enumerate(some)))


def checked(candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """The candidates, if there are not too many and each key comes once. Raises `Invalid`."""
    if len(candidates) > limits.DISTILLATION_CANDIDATES_MAX:
        raise Invalid(f"candidates: at most {limits.DISTILLATION_CANDIDATES_MAX}")
    if len({candidate.key for candidate in candidates}) != len(candidates):
        raise Invalid("candidates: a key comes twice")
    return tuple(candidates)


def unpinned(candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """The candidates without pins: only a person pins."""
    return tuple(
        replace(candidate, pinned=False) if isinstance(candidate, Upsert) else candidate
        for candidate in candidates
    )


def is_one_slice(candidates: Sequence[Candidate]) -> bool:
    """Whether one command may enter all of them."""
    size = sum(len(each.content.encode()) for each in candidates if isinstance(each, Upsert))
    is_short = len(candidates) <= limits.CANDIDATES_PER_SLICE and size <= limits.CANDIDATES_PER_SLICE_BYTES
    return is_short or len(candidates) == 1


def _candidate(value: Any, at: int) -> Candidate:
    if not isinstance(value, Mapping):
        raise Invalid(f"candidates[{at}]: expected an object")
    item = cast("Mapping[Any, Any]", value)
    action, names = item.get("action"), set(item)
    if action == UPSERT and {"action", "key", "content", "confidence"} <= names <= _UPSERT_FIELDS:
        pinned = item.get("pinned", False)
        if not isinstance(pinned, bool):
            raise Invalid(f"candidates[{at}]: pinned is true or false")
        return Upsert(key=item["key"], content=item["content"], confidence=item["confidence"], pinned=pinned)
    if action == TOMBSTONE and names == _TOMBSTONE_FIELDS:
        return Tombstone(key=item["key"], confidence=item["confidence"])
    raise Invalid(
        f"candidates[{at}]: an upsert has key, content, confidence; a tombstone has key, confidence; nothing else"
    )


def _check_text(name: str, value: Any, max_bytes: int) -> None:
    if not isinstance(value, str) or not value.strip():
        raise Invalid(f"{name}: a text that is not blank")
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise Invalid(f"{name}: half a character (a lone surrogate) cannot be kept") from None
    if size > max_bytes:
        raise Invalid(f"{name}: at most {max_bytes} bytes")


def _check_confidence(value: Any) -> None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (is_number and math.isfinite(value) and 0.0 <= value <= 1.0):
        raise Invalid("confidence: a number from 0 to 1")

"""The streams of a search, a file each: every one answers a question by itself, best first.

Scope, expiry, deletion and owner are part of each stream's SQL, so that nothing else is cut in favour of what may not be shown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from memory_core.recall.ask import Ask, Candidate
from memory_core.registry import Registry
from memory_core.store.transaction import Reading


@dataclass(frozen=True, kw_only=True)
class Stream:
    """`candidates(reading, ask, limit)` gives at most `limit` units, best first. `weight`: how much it counts beside the others."""

    candidates: Callable[[Reading, Ask, int], list[Candidate]]
    weight: float
    #: Whether it has anything to say to such a question; one that has not is neither active nor failed.
    applies: Callable[[Ask], bool] = lambda _ask: True
    #: It is asked after the others and starts from what they found (`Ask.seeds`).
    is_led: bool = False


streams: Registry[Stream] = Registry("search stream")

"""What a search is asked, and what its streams answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from memory_core.recall.query import Query
from memory_core.recall.vectors import QuestionVector


class Unit(StrEnum):
    """What is found: a part of a page (number: `page_chunks.number`), or a turn (`observations.seq`)."""

    CHUNK = "chunk"
    TURN = "turn"


@dataclass(frozen=True, kw_only=True)
class Ask:
    """A question to the streams. Each looks in these projects only, and at nothing that is expired, deleted or another's."""

    text: str
    query: Query
    #: Numbers of projects; None: all.
    projects: Sequence[int] | None
    #: UTC microseconds.
    now: int
    principal: str
    include_expired: bool = False
    units: frozenset[Unit] = frozenset(Unit)
    #: Of the question, where there is an embedder; None: not embedded.
    vector: QuestionVector | None = None
    #: What the streams found that were asked before, best first.
    seeds: Sequence[Candidate] = ()

    @property
    def expired_by(self) -> int:
        """Pages that expired by then are not looked at."""
        return -1 if self.include_expired else self.now


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A unit that a stream found. `score`: higher is better, comparable within the stream's answer."""

    unit: Unit
    number: int
    score: float
    #: What `explain` says beside rank and score.
    details: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def key(self) -> tuple[Unit, int]:
        return self.unit, self.number

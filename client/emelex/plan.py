"""What an import is going to bring in, and what it cannot: made before anything is sent."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from memory_core.domain.directory import Directory


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Why something stays out. `kind`: `damaged`, `unsuitable` (memoryd takes no such thing), `busy` or `asset`."""

    kind: str
    what: str
    why: str

    def as_json(self) -> dict[str, str]:
        return {"kind": self.kind, "what": self.what, "why": self.why}


@dataclass(frozen=True, kw_only=True)
class SessionPlan:
    """A session; its events are read again when they are sent. `jobs` as they are sent. Times are UTC microseconds."""

    id: str
    directory: Directory
    is_legacy: bool
    title: str | None
    model_reference: str | None
    started_at: int
    updated_at: int
    last_event_at: int
    events: int
    bytes: int
    substance: int
    jobs: tuple[dict[str, Any], ...] = ()
    has_snapshot: bool = False
    journal: dict[str, Any] | None = None
    assets: frozenset[str] = frozenset()

    @property
    def what(self) -> str:
        return f"session {self.id}"


@dataclass(frozen=True, kw_only=True)
class EntryPlan:
    """An entry of knowledge. `collided`: another entry of the same database has its identity and keeps it."""

    id: str
    directory: Directory
    key: str
    is_legacy: bool
    collided: bool
    pinned: bool
    tombstoned_at: int | None
    created_at: int
    updated_at: int
    active_version: int
    versions: int
    tombstones: int
    #: Versions whose text is longer than memoryd takes.
    cut: int = 0

    @property
    def what(self) -> str:
        return f"knowledge {self.id}"


@dataclass(frozen=True, kw_only=True)
class Asset:
    """A file that events refer to; `problem` says why it cannot be had."""

    sha256: str
    bytes: int
    problem: str = ""


@dataclass(kw_only=True)
class Plan:
    """What is to come, the oldest first, so that lists here have the order that they had there."""

    version: int
    sessions: list[SessionPlan] = field(default_factory=list[SessionPlan])
    entries: list[EntryPlan] = field(default_factory=list[EntryPlan])
    assets: dict[str, Asset] = field(default_factory=dict[str, Asset])
    problems: list[Problem] = field(default_factory=list[Problem])

    @property
    def is_refused(self) -> bool:
        """Whether something is wrong that a person has to decide about; who works now only comes another time."""
        return any(problem.kind != "busy" for problem in self.problems)

    def counts(self) -> dict[str, int]:
        jobs = [job for session in self.sessions for job in session.jobs]
        return {
            "sessions": len(self.sessions),
            "events": sum(session.events for session in self.sessions),
            "event_bytes": sum(session.bytes for session in self.sessions),
            "snapshots": sum(session.has_snapshot for session in self.sessions),
            "unfinished_turns": sum(session.journal is not None for session in self.sessions),
            "compactions": sum(job["kind"] == "compaction" for job in jobs),
            "distillations": sum(job["kind"] == "distillation" for job in jobs),
            "knowledge": len(self.entries),
            "versions": sum(entry.versions for entry in self.entries),
            "tombstones": sum(entry.tombstones for entry in self.entries),
            "assets": len(self.assets),
            "asset_bytes": sum(asset.bytes for asset in self.assets.values()),
        }

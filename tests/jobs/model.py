"""A plain model of jobs: a list of projects in line, and for each job what a person would note on paper."""

from __future__ import annotations

from dataclasses import dataclass, field

from memory_core import limits
from memory_core.clock import MICROSECONDS

LEASE_US = round(limits.JOB_LEASE_SECONDS * MICROSECONDS)
ENDED = ("completed", "failed", "cancelled")


@dataclass
class Paper:
    """What is noted of one job."""

    scope: bytes
    number: int
    state: str = "pending"
    failures: int = 0
    deaths: int = 0
    claims: int = 0
    holder: bytes | None = None
    was_renewed: bool = False
    lease_until: int | None = None
    waits_until: int | None = None
    waits_for: str | None = None
    cancel: bool = False
    effects: int = 0

    @property
    def is_due(self) -> bool:
        return self.state == "pending" and self.waits_until is None

    def let_go(self, state: str, *, until: int | None = None, reason: str | None = None) -> None:
        self.state, self.holder, self.lease_until, self.was_renewed = state, None, None, False
        self.waits_until, self.waits_for, self.cancel = until, reason, False


@dataclass
class Model:
    jobs: dict[bytes, Paper] = field(default_factory=dict)
    line: list[bytes] = field(default_factory=list)
    is_paused: bool = False

    def line_up(self, paper: Paper) -> None:
        if paper.is_due and paper.scope not in self.line:
            self.line.append(paper.scope)

    def next(self) -> bytes | None:
        for scope in self.line:
            due = [key for key, paper in self.jobs.items() if paper.scope == scope and paper.is_due]
            if due:
                return min(due, key=lambda key: self.jobs[key].number)
        return None

    def claim(self, holder: bytes, now: int) -> bytes | None:
        found = None if self.is_paused else self.next()
        if found is not None:
            paper = self.jobs[found]
            paper.state, paper.holder, paper.claims = "running", holder, paper.claims + 1
            paper.lease_until = now + LEASE_US
            self.line.remove(paper.scope)
            self.line.append(paper.scope)
        return found

    def fail(self, paper: Paper, now: int, *, is_permanent: bool) -> None:
        if paper.cancel:
            paper.let_go("cancelled")
            return
        paper.failures += 1
        if is_permanent or paper.failures == 3:
            paper.let_go("failed")
        else:
            seconds = 30 if paper.failures == 1 else 60
            paper.let_go("pending", until=now + seconds * MICROSECONDS, reason="retry")

    def back(self, paper: Paper, now: int, seconds: float = 0, reason: str | None = None) -> None:
        if paper.cancel:
            paper.let_go("cancelled")
        elif seconds:
            paper.let_go("pending", until=now + round(seconds * MICROSECONDS), reason=reason)
        else:
            paper.let_go("pending")
            self.line_up(paper)

    def expire(self, now: int) -> None:
        over = [p for p in self.jobs.values() if p.lease_until is not None and p.lease_until <= now]
        for paper in sorted(over, key=lambda p: (p.lease_until, p.number)):
            if paper.cancel or paper.was_renewed or paper.deaths == 2:
                self.fail(paper, now, is_permanent=False)
            else:
                paper.deaths += 1
                self.back(paper, now)

    def wake(self, now: int) -> None:
        over = [p for p in self.jobs.values() if p.waits_until is not None and p.waits_until <= now]
        for paper in sorted(over, key=lambda p: (p.waits_until, p.number)):
            paper.waits_until = paper.waits_for = None
            self.line_up(paper)

"""What a part measured: figures, each with its target and its verdict, and what was wrong with the stored rows."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Target:
    """`at least` or `at most` a bound, in the figure's own unit."""

    bound: float
    at_most: bool = False

    def is_met(self, value: float) -> bool:
        return value <= self.bound if self.at_most else value >= self.bound

    def __str__(self) -> str:
        return f"{'≤' if self.at_most else '≥'} {shown(self.bound)}"


def at_least(bound: float) -> Target:
    return Target(bound=bound)


def at_most(bound: float) -> Target:
    return Target(bound=bound, at_most=True)


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One number. Without a target it only informs."""

    part: str
    name: str
    value: float
    unit: str = ""
    target: Target | None = None
    #: The single rounds behind a median.
    rounds: tuple[float, ...] = ()

    @property
    def verdict(self) -> str:
        if self.target is None:
            return ""
        return "ok" if self.target.is_met(self.value) else "MISSED"

    def as_json(self) -> dict[str, Any]:
        target = str(self.target) if self.target else None
        return {**asdict(self), "target": target, "verdict": self.verdict}


@dataclass(kw_only=True)
class Result:
    """What one part found. `complaints` are broken promises about stored rows: one is enough to fail."""

    part: str
    figures: list[Figure] = field(default_factory=list)
    #: What was looked at after the measuring, in words.
    verified: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    #: Markdown that belongs to the figures (a table of processes).
    appendix: str = ""

    def add(self, name: str, value: float, unit: str = "", target: Target | None = None) -> None:
        self.figures.append(Figure(part=self.part, name=name, value=value, unit=unit, target=target))

    def add_median(
        self, name: str, rounds: Sequence[float], unit: str = "", target: Target | None = None
    ) -> float:
        value = statistics.median(rounds)
        self.figures.append(
            Figure(
                part=self.part,
                name=name,
                value=value,
                unit=unit,
                target=target,
                rounds=tuple(map(rounded, rounds)),
            )
        )
        return value

    @property
    def is_good(self) -> bool:
        return not self.complaints and all(figure.verdict != "MISSED" for figure in self.figures)

    def as_json(self) -> dict[str, Any]:
        return {
            "part": self.part,
            "good": self.is_good,
            "figures": [figure.as_json() for figure in self.figures],
            "verified": self.verified,
            "complaints": self.complaints,
        }


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of the sorted values lie (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def rounded(value: float) -> float:
    return float(f"{value:.4g}")


def shown(value: float) -> str:
    """As people read it: thousands separated, three digits where it is small."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"

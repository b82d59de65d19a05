"""How much a page's standing moves it among what answers a question: a factor within bounds, never a reason to be found."""

from __future__ import annotations

from collections.abc import Iterable

from memory_core.domain.feedback import SALIENCE_DEFAULT
from memory_core.domain.page import Tier

FACTOR_MIN, FACTOR_MAX = 0.55, 1.5
_KIND = {
    "rule": 0.15,
    "decision": 0.15,
    "procedure": 0.12,
    "gotcha": 0.12,
    "concept": 0.07,
    "slot": 0.07,
    "session": -0.15,
}
_TIER = {Tier.SEMANTIC: 0.10, Tier.PROCEDURAL: 0.10, Tier.EPISODIC: -0.08, Tier.WORKING: -0.03}
_PINNED = 0.08
#: For each point of salience: a page that is called wrong (0.25) loses nearly a fifth, one that helped often (2) gains a quarter.
_SALIENCE = 0.25
_PATH = {"_lint/": -0.20, "investigations/": -0.05}
_TAG = {"canonical": 0.20, "source-of-truth": 0.20, "active": 0.05}
#: Tags that hold a page down whatever else it is.
_CAP = {"do-not-answer-from": 0.55, "test-fixture": 0.55, "superseded": 0.65, "historical": 0.80}


def factor(
    *, kind: str, tier: Tier, path: str, tags: Iterable[str], pinned: bool, salience: float | None = None
) -> float:
    """From `FACTOR_MIN` to `FACTOR_MAX`; 1 for a page of which nothing is known. `salience` is what was said of the page
    (0.25 to 2; None: nothing)."""
    value = 1.0 + _KIND.get(kind, 0.0) + _TIER[tier] + (_PINNED if pinned else 0.0)
    value += _SALIENCE * ((SALIENCE_DEFAULT if salience is None else salience) - SALIENCE_DEFAULT)
    value += sum(part for prefix, part in _PATH.items() if path.startswith(prefix))
    if names := {tag.casefold().replace("_", "-") for tag in tags}:
        value += sum(part for tag, part in _TAG.items() if tag in names)
        value = min(value, *(cap for tag, cap in _CAP.items() if tag in names), FACTOR_MAX)
    return min(max(value, FACTOR_MIN), FACTOR_MAX)

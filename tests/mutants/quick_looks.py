"""No mutant: the wiki is looked at as a whole every three seconds, not every thirty, and committed after a shorter silence."""

from __future__ import annotations

from typing import Any

TARGET = "memory_core.limits.wiki"


def patch(module: Any) -> None:
    module.RECONCILE_SECONDS = 3.0
    module.GIT_QUIET_SECONDS = 0.3

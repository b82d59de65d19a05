"""A condition, not a mutant: a batch takes all that was read, however slow the machine is; so where it meets a fault is no chance."""

from __future__ import annotations

from typing import Any

TARGET = "memory_core.limits"


def patch(module: Any) -> None:
    module.BATCH_SECONDS_MAX = 60.0

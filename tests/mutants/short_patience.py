"""No mutant: a consumer that answers no doorbell for a second is said to hang."""

from __future__ import annotations

from typing import Any

TARGET = "memory_core.limits.serving"


def patch(module: Any) -> None:
    module.CONSUMER_SILENT_SECONDS = 1.0

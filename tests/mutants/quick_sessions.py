"""No mutant: durable sessions whose leases last for seconds. `SESSIONS_QUICK` is `NAME=seconds,…`."""

from __future__ import annotations

import os
from typing import Any

TARGET = "memory_core.limits.durable"


def patch(module: Any) -> None:
    for pair in filter(None, os.environ.get("SESSIONS_QUICK", "").split(",")):
        name, _, seconds = pair.partition("=")
        if hasattr(module, name):
            setattr(module, name, float(seconds))

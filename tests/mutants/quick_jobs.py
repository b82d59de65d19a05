"""No mutant: jobs whose leases, renewals and pauses last in parts of a second. `POOL_QUICK` is `NAME=seconds,…`."""

from __future__ import annotations

import os
from typing import Any

TARGET = "memory_core.limits.jobs"


def patch(module: Any) -> None:
    for pair in filter(None, os.environ.get("POOL_QUICK", "").split(",")):
        name, _, seconds = pair.partition("=")
        if hasattr(module, name):
            setattr(module, name, float(seconds))

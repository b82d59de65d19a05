"""No mutant: pool workers that look, renew and give up in parts of a second. `POOL_QUICK` is `NAME=seconds,…`."""

from __future__ import annotations

import os
from typing import Any

TARGET = "memory_core.limits.pool"


def patch(module: Any) -> None:
    for pair in filter(None, os.environ.get("POOL_QUICK", "").split(",")):
        name, _, seconds = pair.partition("=")
        if hasattr(module, name):
            setattr(module, name, float(seconds))

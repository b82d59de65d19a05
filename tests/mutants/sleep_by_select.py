"""No mutant: `time.sleep` by `select`, for processes under libfaketime.

Python sleeps with `clock_nanosleep` until a time of the monotonic clock, and libfaketime 0.9.10 reckons such a time by the wall clock
that it fakes: EINVAL, whatever it is told about the monotonic clock.
"""

from __future__ import annotations

import select
from typing import Any

TARGET = "memory_core.clock"


def patch(module: Any) -> None:
    # The one module of that name: every library of the process sleeps so from here on.
    module.time.sleep = lambda seconds: select.select((), (), (), seconds)

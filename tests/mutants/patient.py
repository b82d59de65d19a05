"""No mutant: on a crowded machine one process gives another one up much later, as in `tests/patience.py`.

Ten seconds, not a minute: whoever asks the gate waits for fifteen.
"""

from __future__ import annotations

from typing import Any

TARGET = "memory_core.limits"


def patch(module: Any) -> None:
    for name in (
        "BROKER_APPEND_SECONDS",
        "BROKER_CONNECT_SECONDS",
        "HANDOFF_WAIT_SECONDS",
        "QUERY_EMBED_SECONDS",
        "REPLY_WAIT_SECONDS",
        "SUBSCRIBE_SECONDS",
    ):
        setattr(module, name, 10.0)

"""The gate as it is, all but its last step: it parses, redacts, makes the command, answers 202, and keeps nothing.

What single-event ingest is compared with. Never part of the product: it breaks its first promise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memory_core.config import load
from memory_core.domain.command import Envelope
from web.app import create_app as create_gate
from web.parts import build
from workers.queue.admission import Admission


class Nowhere:
    """Takes everything and forgets it."""

    def append(self, envelopes: Sequence[Envelope]) -> Admission:
        return Admission(accepted=len(envelopes))


def create_app() -> Any:
    settings = load()
    parts = build(settings)
    parts.gate._queue = Nowhere()
    return create_gate(settings, parts)

"""How long what is kept of durable sessions and of knowledge is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from memory_core.clock import MICROSECONDS

DAY_US: Final = 24 * 60 * 60 * MICROSECONDS
#: The least and the most of each: days, and versions.
BOUNDS: Final = {
    "session_days": (1, 3_650),
    "knowledge_days": (1, 3_650),
    "tombstone_days": (1, 3_650),
    "asset_days": (1, 3_650),
    "versions_per_key": (1, 1_000),
}


@dataclass(frozen=True, kw_only=True)
class Retention:
    """Days since a session was last written, since knowledge was last said, since it was forgotten, since nothing refers to an
    asset any more; and how many versions of an entry are kept beside the active one."""

    session_days: int = 90
    knowledge_days: int = 180
    tombstone_days: int = 30
    asset_days: int = 7
    versions_per_key: int = 8

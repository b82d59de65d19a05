"""What is told of a page besides its text."""

from __future__ import annotations

from typing import Any

import msgspec

from memory_core import limits
from memory_core.store.pages import StoredPage
from memory_core.tools._answers import Room
from memory_core.wiki import front_matter


def shown_front_matter(page: StoredPage) -> tuple[dict[str, Any], int]:
    """Its values as JSON has them, and how many were left out because there are too many or they are too long."""
    values = front_matter.read(page.content).values
    try:
        plain = msgspec.json.decode(msgspec.json.encode(dict(values), enc_hook=str), type=dict[str, Any])
    except (TypeError, ValueError, msgspec.MsgspecError):
        return {}, len(values)
    room = Room(limits.FRONT_MATTER_SHOWN_MAX_CHARS)
    shown = {name: value for name, value in plain.items() if room.take({name: value})}
    return shown, len(plain) - len(shown)

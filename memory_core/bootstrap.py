"""The one place that chooses implementations and loads what registers itself."""

from __future__ import annotations

from memory_core import commands
from memory_core.registry import discover


def load_commands() -> None:
    """Every command registers itself; the writer and the gate need all of them."""
    discover(commands)

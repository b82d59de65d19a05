"""The one place that chooses implementations and loads what registers itself."""

from __future__ import annotations

from memory_core import commands, jobs
from memory_core.registry import discover


def load_commands() -> None:
    """Every command registers itself; the writer and the gate need all of them."""
    discover(commands)


def load_jobs() -> None:
    """Every kind of job registers itself; the writer, the gate and the pools need all of them."""
    discover(jobs)

"""A line of `memoryd doctor`, and how a check becomes one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from client.server import ServerError


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One line of the report."""

    check: str
    is_ok: bool
    detail: str
    #: What a command that fails by this ends with; 0 where it is well.
    exit_code: int = 0


class Failed(Exception):
    """A check found something wrong; the text says what to do."""


def finding(check: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(check=check, is_ok=True, detail=look())
    except (Failed, ServerError, OSError) as error:
        return Finding(check=check, is_ok=False, detail=str(error), exit_code=getattr(error, "exit_code", 1))

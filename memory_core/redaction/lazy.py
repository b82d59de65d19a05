"""Patterns that are compiled at their first use: most runs of the client need few of them, and a start is short."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` itself takes milliseconds to load
    from typing import Any, AnyStr


class _Lazy:
    """Stands for a compiled pattern; takes over its methods when the first is asked for."""

    def __init__(self, pattern: Any, flags: int) -> None:
        self._pattern = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        compiled: Any = re.compile(self._pattern, self._flags)
        for method in ("match", "search", "fullmatch", "finditer", "findall", "split"):
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)


def lazy_pattern(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    stand_in: Any = _Lazy(pattern, flags)
    return stand_in

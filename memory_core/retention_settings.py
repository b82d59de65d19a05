"""The settings of `[retention]`: whole numbers, read from the configuration file and the environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from memory_core import config
from memory_core.domain.retention import BOUNDS, Retention
from memory_core.errors import Invalid

_SECTION: Final = "retention"


def read_retention(settings: config.Settings, environ: Mapping[str, str] | None = None) -> Retention:
    """`[retention]`. Raises `Invalid` that names the key: one that nobody reads, or a number out of bounds."""
    told = config.section(settings, _SECTION, environ)
    known = [f.name for f in fields(Retention)]
    if unknown := sorted(set(told) - set(known)):
        raise Invalid(f"[{_SECTION}] has no key {', '.join(unknown)}; there are: {', '.join(known)}")
    return Retention(**{name: _number(name, value) for name, value in told.items()})


def _number(name: str, value: Any) -> int:
    least, most = BOUNDS[name]
    try:
        number = int(value) if isinstance(value, int | str) and not isinstance(value, bool) else None
    except ValueError:
        number = None
    if number is None or not least <= number <= most:
        raise Invalid(f"[{_SECTION}] {name}: a whole number from {least} to {most}")
    return number

"""The configuration file of a server: TOML, a table for each concern, all of it optional."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from memory_core.errors import Invalid

#: Tables that the file may have. `server` holds settings of `memory_core/config.py`; the others belong to their rooms.
SECTIONS = ("server", "schedules", "models", "budget", "memory", "retention")


def table(file: Path, name: str) -> dict[str, Any]:
    """The table `[name]` of the file, a fresh dict; empty where there is no file or no such table.

    Raises `Invalid` that names file and place when it is no TOML, cannot be read, or has a table that nobody reads.
    """
    found = _read(file).get(name, {})
    if not isinstance(found, dict):
        raise Invalid(f"{file}: {name} must be a table: write [{name}] on a line of its own")
    return dict(found)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _read(file: Path) -> dict[str, Any]:
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(f"{file} cannot be read: {error}") from error
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Invalid(f"{file} is no valid TOML: {error}") from error
    for name in found:
        if name not in SECTIONS:
            raise Invalid(f"{file}: nobody reads [{name}]; there are: {', '.join(SECTIONS)}")
    return found

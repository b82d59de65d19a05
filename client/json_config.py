"""JSON configuration files of agent clients: read with care, changed in place, written in their own style."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from client.changes import BACKUP_WORD, FileChange, read_text
from memory_core.errors import Invalid

Config = dict[str, Any]
_INDENT = re.compile(r"^[{\[]\r?\n([ \t]+)")


def change_json(path: Path, change: Callable[[Config], None], *, holds_token: bool = False) -> FileChange:
    """The change of the file at `path` that `change` makes to its object.

    Unknown keys and the order of keys stay. `Invalid` when the file holds no JSON object.
    A file that had not existed before us, and would be left empty, is removed.
    """
    before = read_text(path)
    config = _parse(path, before)
    original = json.dumps(config)
    change(config)
    after = before if json.dumps(config) == original else _render(config, before)
    if not config and after is not None and _was_made_by_us(path):
        after = None
    return FileChange(path=path, before=before, after=after, holds_token=holds_token)


def section(config: Config, name: str, path: Path) -> Config:
    """The object under `name`, made if it is not there; `Invalid` when something else stands there."""
    found = config.setdefault(name, {})
    if not isinstance(found, dict):
        raise Invalid(f"{path}: {name!r} is no object")
    return found


def _parse(path: Path, text: str | None) -> Config:
    if text is None or not text.strip():
        return {}
    try:
        config = json.loads(text.removeprefix("\ufeff"), object_pairs_hook=_unique)
    except ValueError as error:
        raise Invalid(f"{path} is not valid JSON ({error}); it was left as it is") from error
    if not isinstance(config, dict):
        raise Invalid(f"{path} holds no JSON object; it was left as it is")
    return config


def _unique(pairs: list[tuple[str, Any]]) -> Config:
    config = dict(pairs)
    if len(config) != len(pairs):
        raise ValueError("a key stands twice")
    return config


def _render(config: Config, before: str | None) -> str:
    found = _INDENT.match((before or "").lstrip("\ufeff"))
    text = json.dumps(config, ensure_ascii=False, indent=found.group(1) if found else 2)
    return text if before and not before.endswith("\n") else f"{text}\n"


def _was_made_by_us(path: Path) -> bool:
    """A file that was there before our first change has a backup beside it."""
    real = path.resolve()
    return real.parent.is_dir() and not any(
        entry.name.startswith(f"{real.name}{BACKUP_WORD}") for entry in real.parent.iterdir()
    )

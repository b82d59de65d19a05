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


def change_json(
    path: Path,
    change: Callable[[Config], None],
    *,
    holds_token: bool = False,
    residue: Config | None = None,
) -> FileChange:
    """The change of the file at `path` that `change` makes to its object.

    Unknown keys and the order of keys stay. `Invalid` when the file holds no JSON object.
    A file that had not existed before us, and would be left empty (or with no more than `residue`,
    what its client wants there beside our entries), is removed.
    """
    before = read_text(path)
    config = _parse(path, before)
    original = json.dumps(config)
    change(config)
    rest = residue or {}
    if json.dumps(config) == original:
        after = before
    elif config in ({}, rest) and _was_made_by_us(path, change, rest):
        after = None
    else:
        after = _render(config, before)
    return FileChange(path=path, before=before, after=after, holds_token=holds_token)


def section(config: Config, name: str, path: Path) -> Config:
    """The object under `name`, made if it is not there; `Invalid` when something else stands there."""
    found = config.setdefault(name, {})
    if not isinstance(found, dict):
        raise Invalid(f"{path}: {name!r} is no object")
    return found


def take_out(config: Config, table: str, name: str) -> None:
    """`config` without `table.name`, and without a table that holds nothing else."""
    entries = config.get(table)
    if isinstance(entries, dict) and name in entries:
        del entries[name]
        if not entries:
            del config[table]


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


def _was_made_by_us(path: Path, change: Callable[[Config], None], residue: Config) -> bool:
    """Whether there was no such file before our first change.

    One that was there has a backup beside it. The oldest backup may hold nothing but ours: hooks that
    were installed before the MCP server into a file of the same name.
    """
    real = path.resolve()
    if not real.parent.is_dir():
        return True
    backups = sorted(
        entry for entry in real.parent.iterdir() if entry.name.startswith(f"{real.name}{BACKUP_WORD}")
    )
    if not backups:
        return True
    try:
        first = _parse(backups[0], read_text(backups[0]))
        original = json.dumps(first)
        change(first)
    except Invalid:
        return False
    return json.dumps(first) != original and first in ({}, residue)

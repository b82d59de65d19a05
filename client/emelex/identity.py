"""Whose directory a row is about. Old schemas know paths alone: what lies there now tells, else the path itself."""

from __future__ import annotations

import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from client.emelex import values
from client.emelex.tables import Row
from memory_core.domain import legacy_identity
from memory_core.domain.directory import Directory
from memory_core.errors import Corrupt, Invalid


@dataclass(frozen=True, kw_only=True)
class Host:
    """The machine whose directories the database is about; only on itself (`is_this`) its paths can be looked at."""

    id: str
    is_this: bool


def directory_of(row: Row, host: Host) -> Directory:
    """As the row says, or by its path. Raises `Corrupt`."""
    path = values.text_of(row, "workspace")
    if row["workspace_device"] is None:
        device, inode = _found(path) if host.is_this else legacy_identity.of_path(path)
    else:
        device, inode = values.text_of(row, "workspace_device"), values.text_of(row, "workspace_inode")
    directory = Directory(host=host.id, device=device, inode=inode, path=path)
    try:
        directory.check()
    except Invalid as error:
        raise Corrupt(str(error)) from error
    return directory


def is_legacy(directory: Directory) -> bool:
    return directory.device == legacy_identity.DEVICE


def told_apart(rows: Sequence[Row], directories: Mapping[str, Directory]) -> dict[str, Directory]:
    """Of entries (by id) that turn out to be of one directory and have one key, the one that changed last keeps its identity; each other
    one gets one of its own, which matches no directory. Returns those."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        own = directories[row["id"]]
        groups.setdefault((own.device, own.inode, row["key"]), []).append(row)
    taken = set(groups)
    moved: dict[str, Directory] = {}
    for group in groups.values():
        newest = max(group, key=lambda row: (row["updated_at"], row["id"]))
        for row in group:
            if row is not newest:
                moved[row["id"]] = _moved(row, directories[row["id"]], taken)
    return moved


def _moved(row: Row, own: Directory, taken: set[tuple[str, str, str]]) -> Directory:
    device, inode = legacy_identity.of_row(
        row["id"], lambda number: (legacy_identity.DEVICE, number, row["key"]) in taken
    )
    taken.add((device, inode, row["key"]))
    return Directory(host=own.host, device=device, inode=inode, path=own.path)


def _found(path: str) -> tuple[str, str]:
    try:
        found = Path(path).resolve(strict=True).stat()
    except (OSError, ValueError, RuntimeError):
        return legacy_identity.of_path(path)
    if not stat.S_ISDIR(found.st_mode):
        return legacy_identity.of_path(path)
    return str(found.st_dev), str(found.st_ino)

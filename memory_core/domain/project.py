"""A project as a value."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Project:
    """The isolation key of every row, with the names that people use for it."""

    id: bytes
    #: Small number; its token in full-text rows is made of it.
    number: int
    name: str
    workspace: str
    #: Where its pages lie below the wiki root, `<workspace>/<project>`; None: in the one that its names give.
    folder: str | None = None
    #: Where they lay before somebody renamed the folder, the last one last.
    earlier_folders: tuple[str, ...] = ()

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Project:
        return cls(
            id=row["id"],
            number=row["number"],
            name=row["name"],
            workspace=row["workspace"],
            folder=row["folder"],
            earlier_folders=tuple(json.loads(row["earlier_folders"])),
        )

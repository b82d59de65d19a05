"""A project as a value."""

from __future__ import annotations

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

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Project:
        return cls(id=row["id"], number=row["number"], name=row["name"], workspace=row["workspace"])

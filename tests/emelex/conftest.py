from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.client.durable.conftest import gate, host, person
from tests.emelex.databases import Emelex

__all__ = ["gate", "host", "person"]

MakeEmelex = Callable[..., Emelex]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[MakeEmelex]:
    """Makes a database of the older program in a directory of its own."""
    made: list[Emelex] = []

    def emelex(version: int = 6, name: str = "emelex.sqlite3") -> Emelex:
        made.append(Emelex(tmp_path / f"emelex-{len(made)}", version, name))
        return made[-1]

    yield emelex
    for each in made:
        each.close()

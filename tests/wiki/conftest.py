from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.books import Books


@pytest.fixture
def books(tmp_path: Path) -> Generator[Books]:
    made = Books(tmp_path)
    yield made
    made.close()

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.books import Books
from tests.knowledge.learning import Knowing


@pytest.fixture
def knowing(tmp_path: Path) -> Generator[Knowing]:
    books = Books(tmp_path)
    yield Knowing(books)
    books.close()

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.books import Books
from tests.knowledge.learning import Knowing, settle
from tests.wiki.house import House
from tests.wiki.oracle import unexplained


@pytest.fixture
def house(tmp_path: Path) -> Generator[House]:
    made = House(tmp_path / "house")
    yield made
    assert unexplained(made.books) == []
    made.close()


@pytest.fixture
def knowing(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Knowing]:
    """In the books of the house where a test has one, else in books of its own."""
    if "house" in request.fixturenames:
        yield Knowing(request.getfixturevalue("house").books)
        return
    books = Books(tmp_path)
    yield Knowing(books)
    books.close()


@pytest.fixture
def made(house: House, knowing: Knowing) -> dict[str, Any]:
    """One entry with its file, and two ordinary pages, so that one vanished file is not most of the wiki."""
    answer = knowing.known(content="make all\n")
    house.write_page("notes/a.md", "one\n")
    house.write_page("notes/b.md", "two\n")
    settle(house)
    return answer

"""Counting who came upon which page."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from memory_core import limits
from memory_core.commands.accesses import CountAccesses
from memory_core.commands.pages import WritePage
from memory_core.domain.command import Refusal
from tests.books import Books

MINUTE = limits.ACCESS_THROTTLE_SECONDS


@pytest.fixture
def books(tmp_path: Path) -> Generator[Books]:
    made = Books(tmp_path)
    yield made
    made.close()


def write(books: Books, body: str = "text") -> str:
    return books.apply(WritePage(workspace="default", project="alpha", path="a", body=body))["page_id"]


def page(books: Books) -> dict[str, object]:
    return books.query("SELECT access_count, last_accessed_at, updated_at FROM pages")[0]


def test_one_principal_counts_once_a_minute(books: Books):
    found = CountAccesses(page_ids=(write(books),))
    counted: list[int] = []
    for pause in (0, MINUTE - 2, 2, MINUTE + 1):
        books.clock.advance(pause)
        counted.append(books.apply(found, principal="ada")["counted"])
    assert counted == [1, 0, 1, 1]
    assert books.apply(found, principal="bob") == {"counted": 1}
    assert page(books)["access_count"] == 4
    assert len(books.query("SELECT * FROM page_access")) == 2


def test_a_page_named_twice_counts_once_and_a_page_that_is_gone_not_at_all(books: Books):
    here = write(books)
    gone = "00000000-0000-7000-8000-000000000000"
    assert books.apply(CountAccesses(page_ids=(here, gone, here))) == {"counted": 1}


def test_reading_changes_neither_date_nor_index_and_a_new_version_keeps_the_count(books: Books):
    found = CountAccesses(page_ids=(write(books),))
    before = page(books)["updated_at"]
    books.apply(found)
    assert page(books)["updated_at"] == before
    assert page(books)["last_accessed_at"] == books.clock.now_us()
    write(books, "another text")
    assert page(books)["access_count"] == 1


def test_a_clock_set_back_does_not_end_the_counting(books: Books):
    found = CountAccesses(page_ids=(write(books),))
    books.apply(found)
    books.clock.advance(-86_400)
    assert books.apply(found) == {"counted": 1}


def test_too_many_at_once_and_what_is_no_id_are_refused(books: Books):
    many = tuple(f"00000000-0000-7000-8000-{n:012}" for n in range(limits.ACCESS_PAGES_MAX + 1))
    assert isinstance(books.apply(CountAccesses(page_ids=many)), Refusal)
    assert isinstance(books.apply(CountAccesses(page_ids=("x",))), Refusal)

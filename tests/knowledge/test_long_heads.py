"""An entry whose page has a front matter, written by hand, that a rewrite could not keep."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from memory_core.domain.command import Refusal
from tests.knowledge.learning import Knowing, upsert
from tests.wiki.house import House


@pytest.fixture
def house(tmp_path: Path) -> Generator[House]:
    made = House(tmp_path / "house")
    yield made
    made.close()


def test_a_head_that_could_not_be_kept_refuses_a_change_of_its_entry_and_stays(house: House):
    knowing = Knowing(house.books)
    entry: dict[str, Any] = knowing.known(content="make all\n")
    house.write_page("notes/b.md", "other\n")
    house.books.install(house.installer)
    house.look_until_still()
    path, body = knowing.page(entry["id"])
    text = "---\n" + "".join(f"key-{number}: value\n" for number in range(2_000)) + "---\n" + body
    house.save(path, text)
    house.look_until_still()

    for answer in (knowing.remember(content="make everything\n"), knowing.pin(entry["id"])):
        assert isinstance(answer, Refusal)
        assert "16 KB" in answer.message
    applied = knowing.distil(upsert(content="make most of it\n", confidence=1.0))
    house.books.install(house.installer)

    assert [one.is_active for one in applied] == [False]
    assert house.file(path).read_text() == text

"""What is found in the wiki goes to the writer a little at a time."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.wiki.house import House


@pytest.fixture
def house(tmp_path: Path) -> Generator[House]:
    made = House(tmp_path)
    yield made
    made.close()


def test_what_was_found_lets_the_writer_wait_for_nothing_else(house: House):
    house.write_page("notes/a.md", "one\n")
    (house.root / "default" / "alpha" / "notes" / "b.md").write_text("two\n")
    patience: list[int | None] = [house.outside.patience_ms]
    step = house.outside.step

    def seen(report) -> None:
        patience.append(house.outside.patience_ms)
        step(report)

    house.outside.step = seen
    house.look_until_still()

    assert patience[0] is None
    assert 0 in patience

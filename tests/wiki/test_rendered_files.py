"""What memoryd renders is put right soon after somebody deleted or edited it, without waiting for a change of a page."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from pathlib import Path

import pytest

from memory_core import limits
from memory_core.commands.rendering import render_due
from tests.wiki.house import House

#: Longer than both the delay of a rendering and the pause between two.
A_WHILE = limits.RENDER_DELAY_SECONDS + limits.RENDER_PAUSE_SECONDS + 1.0


@pytest.fixture
def house(tmp_path: Path) -> Generator[House]:
    made = House(tmp_path)
    made.write_page("notes/a.md", "# A\n")
    render(made)
    made.look_until_still()
    yield made
    made.close()


def render(house: House, seconds: float = A_WHILE) -> int:
    """The writer's duty, that much later; how many files it rendered."""
    house.books.clock.advance(seconds)
    count = house.books.transact(lambda tx: render_due(tx, 10))
    house.books.install(house.installer, house.redact)
    return count


def test_a_deleted_index_comes_back_and_nothing_else_is_rendered(house: House):
    index = house.file("index.md")
    before = index.read_bytes()
    index.unlink()

    house.look_until_still()
    assert render(house) == 1

    assert index.read_bytes() == before
    house.look_until_still()
    assert render(house) == 0


def test_what_somebody_wrote_into_an_index_becomes_a_page_and_the_index_is_put_right(house: House):
    index = house.file("index.md")
    before = index.read_text()
    index.write_text(f"{before}\nremember the milk\n")

    house.look_until_still()
    render(house)
    render(house)

    assert "remember the milk" not in index.read_text()
    assert [path for path in house.pages() if path.startswith("notes/written-into-index")] != []
    assert house.found("milk") == [path for path in house.pages() if "written-into" in path]


def test_a_deleted_log_comes_back_too(house: House):
    (log,) = house.file("index.md").parent.glob("log-*.md")
    log.unlink()
    house.look_until_still()
    render(house)

    assert log.exists()


def test_rendered_files_that_look_as_they_did_are_not_read_again(house: House):
    house.look_until_still()
    house.read.clear()
    house.look_until_still()

    assert house.read == []


def test_a_directory_that_is_away_is_not_begun_with_an_index(house: House):
    for number in range(5):
        house.write_page(f"notes/{number}.md", "# N\n")
    render(house)
    house.look_until_still()
    away = house.root.with_name("away")
    shutil.move(house.file("."), away)

    status = house.look_until_still()

    assert status["status"] == "held"
    assert render(house) == 0
    assert not house.file(".").exists()


def test_a_restless_index_is_rendered_no_more_than_once_a_minute(house: House):
    rendered = 0
    for _ in range(12):
        house.file("index.md").unlink(missing_ok=True)
        house.look_until_still()
        rendered += render(house, seconds=10.0)

    assert 1 <= rendered <= 3

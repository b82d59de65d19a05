"""What is found in the wiki goes to the writer a little at a time."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from memory_core import limits
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


@pytest.mark.parametrize("is_quiet", [True, False])
def test_of_many_findings_the_writer_enters_one_at_least_and_stops_when_its_time_is_over(
    house: House, monkeypatch: pytest.MonkeyPatch, is_quiet: bool
):
    house.write_page("notes/d.md", "d\n")
    house.look_until_still()
    for name in ("a", "b", "c"):
        house.save(f"notes/{name}.md", f"{name}\n")
    monkeypatch.setattr(limits, "FINDINGS_QUIET_SECONDS" if is_quiet else "FINDINGS_SECONDS", -1.0)
    step, entered = house.outside.step, []

    def stepped(report) -> bool:
        before = len(house.pages())
        was_any = step(report, is_quiet=is_quiet)
        if was_any:
            entered.append(len(house.pages()) - before)
        return was_any

    house.outside.step = stepped
    house.look_until_still()

    assert entered == [1, 1, 1]

from __future__ import annotations

from memory_core import limits
from workers.supervisor.deaths import DeathRow


def test_two_deaths_are_forgiven_and_the_third_waits() -> None:
    row = DeathRow()
    assert [row.died(0.0) for _ in range(3)] == [0.0, 0.2, 1.0]


def test_the_pause_has_an_end() -> None:
    row = DeathRow()
    for _ in range(50):
        last = row.died(0.0)
    assert last == 30.0


def test_a_steady_life_ends_the_row() -> None:
    row = DeathRow()
    for _ in range(5):
        row.died(limits.STEADY_SECONDS / 2)
    assert row.died(limits.STEADY_SECONDS) == 0.0

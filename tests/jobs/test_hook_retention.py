"""Sessions that hooks told of grow old as durable ones do: never one that is open, not wholly written, or not distilled to its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memory_core import bootstrap, limits
from memory_core.commands.sessions import refinalise_due
from memory_core.domain.job import Failure
from tests.assets.test_maintenance import DAY, House
from tests.factories import ended, event, said, started
from tests.jobs.test_hook_journal import SESSION, tell, work
from tests.jobs.working import Worker


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    bootstrap.load_jobs()
    house = House(tmp_path / "data")
    yield house
    house.store.close()


def told(house: House, *, is_over: bool = True) -> None:
    """A session in which a fact was told."""
    tell(
        house.store,
        event(body="Remember that deployments run on Fridays only."),
        said("Noted."),
        *([ended()] if is_over else []),
    )


def worked_off(house: House) -> None:
    work(house.store)
    work(house.store, "distillation", "distillation")


def aged(house: House, days: float = 91) -> None:
    house.store.clock.advance(days * DAY)


def is_there(house: House) -> bool:
    return bool(house.store.all("SELECT 1 FROM durable_sessions WHERE session_id = ?", SESSION))


def test_an_old_session_goes_with_what_hooks_told_and_its_knowledge_and_its_page_stay(house: House):
    told(house)
    worked_off(house)
    aged(house, 89)
    assert "sessions_deleted" not in house.maintain()
    assert is_there(house)
    aged(house, 1.1)

    result = house.maintain()

    assert result["sessions_deleted"] == 1
    tables = ("sessions", "durable_sessions", "session_events", "observations", "session_snapshots")
    assert [house.count(table) for table in tables] == [0, 0, 0, 0, 0]
    assert house.count("jobs WHERE kind <> 'maintenance'") == 0
    (version,) = house.store.all("SELECT content, provenance_session_id FROM knowledge_versions")
    assert version == {"content": "Deployments run on Fridays only.", "provenance_session_id": SESSION}
    (page,) = house.store.all("SELECT tombstoned_at FROM pages WHERE path LIKE 'sessions/%'")
    assert page == {"tombstoned_at": None}


def test_a_long_one_goes_in_slices(house: House, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "DELETED_OBSERVATIONS_PER_SLICE", 3)
    for number in range(5):
        tell(
            house.store,
            event(body=f"Prompt {number}", unique_id=f"p{number}"),
            said("Done", unique_id=f"a{number}"),
        )
    tell(house.store, ended())
    worked_off(house)
    aged(house)

    result = house.maintain()

    assert result["slices_dropped"] > 3
    assert [house.count(table) for table in ("sessions", "observations")] == [0, 0]


def still_open(house: House) -> None:
    told(house)
    worked_off(house)
    tell(
        house.store,
        started(reason="resume", occurred_at=house.store.clock.now_us() + 1_000_000, unique_id="again"),
        event(body="More", occurred_at=house.store.clock.now_us() + 2_000_000, unique_id="p2"),
    )
    work(house.store)


def never_written(house: House) -> None:
    told(house)


def never_distilled(house: House) -> None:
    told(house)
    work(house.store)


def distillation_failed(house: House) -> None:
    told(house)
    work(house.store)
    worker = Worker(house.store, queues=("distillation",))
    worker.take()
    worker.fail(Failure.ANSWER, permanent=True)


def late_event(house: House) -> None:
    told(house)
    worked_off(house)
    tell(house.store, said("One thing more", unique_id="late"))


def late_event_whose_journal_failed(house: House) -> None:
    late_event(house)
    house.store.clock.advance(limits.LATE_EVENT_DEBOUNCE_SECONDS + 1)
    with house.store.transaction() as tx:
        assert refinalise_due(tx) == 1
    worker = Worker(house.store, queues=("forget",), kind="hook_journal")
    assert worker.take()
    worker.fail(permanent=True)


@pytest.mark.parametrize(
    "made",
    [
        still_open,
        never_written,
        never_distilled,
        distillation_failed,
        late_event,
        late_event_whose_journal_failed,
    ],
)
def test_one_that_is_not_at_its_end_is_never_removed(house: House, made: Callable[[House], None]):
    made(house)
    before = house.count("observations"), house.count("session_events")
    aged(house)

    assert "sessions_deleted" not in house.maintain()

    assert (house.count("observations"), house.count("session_events")) == before
    assert house.count("sessions") == 1


def test_one_whose_late_event_was_distilled_after_all_goes(house: House):
    late_event(house)
    house.store.clock.advance(limits.LATE_EVENT_DEBOUNCE_SECONDS + 1)
    with house.store.transaction() as tx:
        refinalise_due(tx)
    aged(house)
    assert "sessions_deleted" not in house.maintain()
    worked_off(house)
    aged(house)

    assert house.maintain()["sessions_deleted"] == 1

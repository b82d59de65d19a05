"""Slots of schedules: each is staged once, whatever the clock does and however often the writer starts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory_core import jobs, limits
from memory_core.clock import MICROSECONDS, rfc3339
from memory_core.commands.capture import RecordObservation
from memory_core.commands.job_control import RunSchedule
from memory_core.domain.capture import capped
from memory_core.domain.command import Refusal
from memory_core.domain.schedule import parse
from memory_core.registry import discover
from memory_core.store import schedule_slots
from tests.factories import Store, database, envelope, event
from tests.jobs.working import Worker, add_job, add_project, job_of, kind, look, registered
from workers.writer.jobs import Stager, duties

DAY = 24 * 3600


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = database(tmp_path)
    with registered(kind(), kind("test_each", per="project")):
        yield store
    store.close()


def turn(store: Store, work: Any) -> int:
    with store.transaction() as tx:
        return work(tx)


def stager(**texts: str) -> Stager:
    return Stager({name: parse(text) for name, text in texts.items()})


def begin(store: Store, some: Stager) -> None:
    """The schedule is seen for the first time."""
    assert turn(store, some.stage) == 0


def slots(store: Store) -> list[str]:
    rows = store.all("SELECT slot FROM schedule_slots WHERE job_id IS NOT NULL ORDER BY slot")
    return [row["slot"] for row in rows]


def finish_all(store: Store) -> None:
    worker = Worker(store)
    while worker.take() is not None:
        worker.finish()


def test_a_new_schedule_begins_with_its_next_slot(store: Store):
    some = stager(test_sum="every 15m")

    begin(store, some)
    store.clock.advance(900)

    assert turn(store, some.stage) == 1
    assert slots(store) == [rfc3339(store.clock.now_us() // (900 * MICROSECONDS) * 900 * MICROSECONDS)]


def test_each_slot_is_staged_once_by_however_many_writers_in_a_row(store: Store):
    begin(store, stager(test_sum="every 15m"))
    store.clock.advance(900)
    made = 0
    for _ in range(5):
        again = stager(test_sum="every 15m")
        made += turn(store, again.stage) + turn(store, again.stage)
        finish_all(store)

    assert made == 1
    assert len(store.all("SELECT 1 FROM jobs")) == 1


def test_what_was_missed_is_one_job_of_the_latest_slot(store: Store):
    some = stager(test_sum="every 15m")
    begin(store, some)
    store.clock.advance(10 * DAY)

    assert [turn(store, some.stage) for _ in range(3)] == [1, 0, 0]
    assert len(slots(store)) == 1


def test_a_slot_that_comes_while_the_last_job_has_not_begun_makes_no_second_one(store: Store):
    some = stager(test_sum="every 15m")
    begin(store, some)
    for _ in range(10):
        store.clock.advance(900)
        turn(store, some.stage)

    assert len(store.all("SELECT 1 FROM jobs")) == 1
    assert len(slots(store)) == 10
    finish_all(store)
    store.clock.advance(900)
    turn(store, some.stage)
    assert len(store.all("SELECT 1 FROM jobs")) == 2


def test_a_slot_that_comes_while_a_job_runs_makes_another(store: Store):
    some = stager(test_sum="every 15m")
    begin(store, some)
    store.clock.advance(900)
    turn(store, some.stage)
    Worker(store).take()
    store.clock.advance(900)
    turn(store, some.stage)

    assert len(store.all("SELECT 1 FROM jobs")) == 2


def test_a_slot_whose_transaction_failed_is_staged_at_the_next_look(store: Store):
    some = stager(test_sum="every 15m")
    begin(store, some)
    store.clock.advance(900)

    def failing(tx: Any) -> int:
        some.stage(tx)
        raise RuntimeError("the disk is full")

    with pytest.raises(RuntimeError):
        turn(store, failing)

    assert turn(store, some.stage) == 1


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    moves=st.lists(
        st.tuples(
            st.sampled_from(["pass", "set", "restart"]),
            st.sampled_from([-DAY, -3_600, -900, -31, 1, 60, 899, 900, 3_600, DAY]),
        ),
        min_size=1,
        max_size=25,
    ),
    text=st.sampled_from(["every 15m", "cron 30 3 * * *", "cron */20 * * * *"]),
)
def test_whatever_the_clock_does_no_slot_is_staged_twice(tmp_path_factory, moves, text):
    store = database(tmp_path_factory.mktemp("slots"))
    with registered(kind("test_clock")):
        schedule = parse(text)
        assert schedule is not None
        some = Stager({"test_clock": schedule})
        begin(store, some)
        staged: list[str] = []
        for move, seconds in moves:
            if move == "pass":
                store.clock.advance(abs(seconds))
            elif move == "set":
                store.clock.set_wall(seconds)
            else:
                some = Stager({"test_clock": schedule})
            before = set(slots(store))
            count = turn(store, some.stage)
            new = set(slots(store)) - before
            assert len(new) == count <= 1
            staged += new
            finish_all(store)
            current = schedule.slot(store.clock.now_us())
            assert current is not None
            # The current one is there always, if only as the one that was seen first.
            assert schedule_slots.is_staged(
                look(store), kind="test_clock", project_id=None, slot=rfc3339(current)
            )
        assert len(staged) == len(set(staged)) == len(store.all("SELECT 1 FROM jobs"))
    store.close()


def work_in(store: Store, project: str) -> None:
    store.apply(
        RecordObservation(
            event=capped(event(session_key=f"in-{project}", body="go")), source="cursor/user", project=project
        )
    )


def test_a_kind_by_project_is_staged_where_something_happened(store: Store):
    work_in(store, "before")
    store.clock.advance(1)
    some = stager(test_each="every 15m")
    begin(store, some)
    store.clock.advance(600)
    work_in(store, "busy")
    add_project(store, "quiet")
    store.clock.advance(300)

    assert [turn(store, some.stage) for _ in range(2)] == [1, 0]
    finish_all(store)
    store.clock.advance(900)
    assert turn(store, some.stage) == 0
    work_in(store, "before")
    work_in(store, "busy")
    store.clock.advance(900)
    assert turn(store, some.stage) == 2

    rows = store.all(
        "SELECT p.name AS name, count(*) AS n FROM jobs j JOIN projects p ON p.id = j.project_id GROUP BY 1 ORDER BY 1"
    )
    assert [(row["name"], row["n"]) for row in rows] == [("before", 1), ("busy", 2)]


def test_many_projects_are_staged_a_few_at_a_time(store: Store, monkeypatch):
    monkeypatch.setattr(limits, "SCHEDULE_PROJECTS", 2)
    some = stager(test_each="every 15m")
    begin(store, some)
    store.clock.advance(1)
    for number in range(5):
        work_in(store, f"p{number}")
    store.clock.advance(900)

    assert [turn(store, some.stage) for _ in range(5)] == [2, 2, 1, 0, 0]


def test_a_run_by_hand_is_one_more_job_at_once(store: Store):
    some = stager(test_sum="every 15m")
    begin(store, some)

    first = store.apply(RunSchedule(kind="test_sum"))
    second = store.apply(RunSchedule(kind="test_sum"))

    assert first["state"] == "pending"
    assert first["id"] != second["id"]
    assert turn(store, some.stage) == 0
    assert all(slot.startswith("manual:") for slot in slots(store))


def test_a_run_by_hand_before_the_schedule_was_seen_makes_nothing_due(store: Store):
    some = stager(test_sum="every 15m")
    store.apply(RunSchedule(kind="test_sum"))

    begin(store, some)

    assert len(store.all("SELECT 1 FROM jobs")) == 1


def test_a_run_by_hand_that_is_applied_twice_is_one(store: Store):
    sent = envelope(RunSchedule(kind="test_sum"))

    ids = {store.apply(RunSchedule(kind="test_sum"), id=sent.id)["id"] for _ in range(2)}

    assert len(ids) == 1


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (RunSchedule(kind="nonsense"), "not_found"),
        (RunSchedule(kind="test_sum", workspace="default", project="x"), "invalid"),
        (RunSchedule(kind="test_each"), "invalid"),
        (RunSchedule(kind="test_each", workspace="default", project="nowhere"), "invalid"),
    ],
)
def test_a_run_that_cannot_be_says_why(store: Store, asked: RunSchedule, code: str):
    refused = store.apply(asked)

    assert isinstance(refused, Refusal)
    assert refused.code == code


def test_a_run_by_hand_of_one_project(store: Store):
    add_project(store, "one")

    answer = store.apply(RunSchedule(kind="test_each", workspace="default", project="one"))

    assert answer["state"] == "pending"
    assert len(store.all("SELECT 1 FROM jobs WHERE project_id IS NOT NULL")) == 1


def test_old_slots_go_with_their_jobs_and_the_newest_of_each_stays(store: Store):
    tidy = next(duty.work for duty in duties({}, store.clock) if duty.name == "tidy_jobs")
    some = stager(test_sum="every 1d")
    begin(store, some)
    for _ in range(5):
        store.clock.advance(DAY)
        turn(store, some.stage)
        finish_all(store)
    event_based = add_job(store, "a fact")
    store.clock.advance((limits.SCHEDULE_SLOT_DAYS + 10) * DAY)

    turn(store, tidy)

    assert len(slots(store)) == 1
    assert len(store.all("SELECT 1 FROM jobs")) == 2
    assert job_of(store, event_based).kind == "test_sum"


@pytest.mark.parametrize(
    ("kind", "how"),
    [
        ("compaction", "memoryd sessions compact SESSION_ID"),
        ("distillation", "memoryd sessions distill SESSION_ID"),
        ("hook_journal", "comes by itself"),
    ],
)
def test_a_kind_of_one_session_is_run_by_no_schedule(store: Store, kind: str, how: str):
    discover(jobs)
    refused = store.apply(RunSchedule(kind=kind))

    assert isinstance(refused, Refusal)
    assert refused.code == "invalid"
    assert how in refused.message
    listed = refused.message.rpartition("there are: ")[2].split(", ")
    assert "maintenance" in listed
    assert kind not in listed
    assert store.all("SELECT 1 FROM jobs") == []

"""Who gets which job: the oldest of the project whose turn it is, from queues that are open."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from memory_core.commands.job_control import PauseQueue, ResumeQueue
from memory_core.domain.command import Refusal
from memory_core.domain.job import Failure, State
from memory_core.store import job_claims
from tests.factories import Store, database
from tests.jobs.working import Worker, add_job, add_project, job_of, kind, registered


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = database(tmp_path)
    with registered(kind(), kind("test_data", on_data_host=True), kind("test_far", queue="forget")):
        yield store
    store.close()


def test_a_claim_gives_the_oldest_job_and_says_whether_there_is_more(store: Store):
    ids = [add_job(store, name) for name in "abc"]
    worker = Worker(store)

    assert [worker.take() for _ in range(4)] == [*ids, None]


def test_a_claimed_job_is_not_given_twice(store: Store):
    add_job(store)

    assert Worker(store, "one").take() is not None
    assert Worker(store, "two").take() is None


def test_a_paused_queue_gives_no_job_and_goes_on_where_it_was(store: Store):
    job = add_job(store)
    store.apply(PauseQueue(queue="lint"))
    worker = Worker(store)

    assert worker.take() is None
    assert store.apply(ResumeQueue(queue="lint")) == {"queue": "lint", "paused": False, "changed": True}
    assert worker.take() == job


def test_what_runs_goes_on_when_its_queue_is_paused(store: Store):
    add_job(store, "a")
    add_job(store, "b")
    worker = Worker(store)
    worker.take()
    store.apply(PauseQueue(queue="lint"))

    assert worker.renew()["cancel"] is False
    # There is one more, but not for now.
    assert worker.finish() == {"state": "completed", "more": False}


def test_an_unknown_queue_cannot_be_paused(store: Store):
    refused = store.apply(PauseQueue(queue="nonsense"))

    assert isinstance(refused, Refusal)
    assert "compaction" in refused.message


def test_a_worker_without_the_data_is_not_given_what_needs_it(store: Store):
    needs = add_job(store, name="test_data")
    plain = add_job(store)
    far, near = Worker(store, "far", on_data_host=False), Worker(store, "near")

    assert far.take() == plain
    assert far.take() is None
    assert near.take() == needs


def test_who_asks_for_one_kind_is_given_the_oldest_of_it_that_is_due_and_no_other(store: Store):
    first = add_job(store, "1")
    data = [add_job(store, str(n), name="test_data") for n in range(3)]
    one, other = Worker(store, kind="test_data"), Worker(store, name="other", kind="test_data")

    assert (one.take(), other.take()) == (data[0], data[1])
    one.fail()  # it waits now
    assert one.take() == data[2]
    assert Worker(store, name="third", kind="test_data").take() is None
    assert Worker(store, name="far", kind="test_sum", on_data_host=False).take() == first


def test_a_kind_that_reads_the_data_is_not_given_to_who_has_none_though_it_asks_for_it(store: Store):
    add_job(store, "1", name="test_data")
    assert Worker(store, kind="test_data", on_data_host=False).take() is None


def test_a_claim_of_one_kind_is_an_index_look_up(store: Store):
    sql = f"EXPLAIN QUERY PLAN {job_claims._READY_OF_KIND.sql}"
    rows = store.all(sql.replace(":queue", "'lint'").replace(":kind", "'k'").replace(":on_data_host", "1"))
    (plan,) = [row["detail"] for row in rows]
    assert "ix_jobs_queue_state_kind_id (queue=? AND state=? AND kind=?)" in plan


def test_a_job_of_a_kind_that_is_gone_fails_and_holds_nobody_up(store: Store):
    with registered(kind("test_gone")):
        gone = add_job(store, name="test_gone")
    plain = add_job(store)

    assert Worker(store).take() == plain
    assert job_of(store, gone).state is State.FAILED
    assert job_of(store, gone).last_error == Failure.UNKNOWN_KIND.sentence


def test_projects_take_turns_however_many_jobs_one_has(store: Store):
    many, few = add_project(store, "many"), add_project(store, "few")
    for number in range(20):
        add_job(store, f"m{number}", project_id=many)
    for number in range(3):
        add_job(store, f"f{number}", project_id=few)
    worker = Worker(store)

    order = []
    while (job := worker.take()) is not None:
        order.append("few" if job_of(store, job).project_id == few else "many")
        worker.finish()

    assert order[:6].count("few") == 3
    assert order[6:] == ["many"] * 17


def test_a_thousand_jobs_of_five_projects_over_three_workers_starve_none(store: Store):
    names = [f"p{number}" for number in range(5)]
    projects = {add_project(store, name): name for name in names}
    # The first project comes first with most of them.
    for project, count in zip(projects, (600, 100, 100, 100, 100), strict=True):
        for number in range(count):
            add_job(store, f"{projects[project]}/{number}", project_id=project)
    workers = [Worker(store, f"worker-{number}") for number in range(3)]
    served: list[str] = []

    is_done = False
    while not is_done:
        is_done = True
        for worker in workers:
            if worker.job:
                worker.finish()
                worker.job = b""
            if (job := worker.take()) is not None:
                is_done = False
                served.append(projects[job_of(store, job).project_id or b""])

    assert len(served) == 1000
    # While all have work, no project waits for more than the others' turns.
    first = served[:500]
    assert Counter(first) == dict.fromkeys(names, 100)
    for name in names:
        places = [place for place, other in enumerate(first) if other == name]
        assert max(b - a for a, b in pairwise(places)) <= 5


def test_a_job_about_what_somebody_works_with_is_passed_over_and_not_counted(store: Store):
    until = {"at": store.clock.now_us() + 10_000_000}
    with registered(kind("test_busy", busy_until=lambda _reading, _job: until["at"])):
        busy = add_job(store, "a", name="test_busy")
        other = add_job(store, "b")
        worker = Worker(store)

        assert worker.take() == other
        assert worker.take() is None
        held = job_of(store, busy)
        assert (held.state, held.claims, held.failures, held.waits_for) == (State.PENDING, 0, 0, "contended")
        assert held.not_before == until["at"]

        until["at"] = store.clock.now_us()
        store.clock.advance(11)
        with store.transaction() as tx:
            assert job_claims.wake(tx, 128) == 1
        assert worker.take() == busy


def test_a_job_that_waits_long_for_somebody_is_looked_at_again_within_half_a_minute(store: Store):
    now = store.clock.now_us()
    with registered(kind("test_busy", busy_until=lambda _reading, _job: now + 3_600_000_000)):
        busy = add_job(store, name="test_busy")

        assert Worker(store).take() is None
        assert job_of(store, busy).not_before == now + 30_000_000

"""Jobs that wait for the budget or a person, droppable ones that are left out, and old books."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_core import limits
from memory_core.commands.model_control import PauseModels, ResumeModels, keep_budget, tidy_calls
from memory_core.domain.budget import Budget, Cap, Price
from memory_core.domain.command import Refusal
from memory_core.domain.job import Reason, State
from memory_core.job_kind import digest_of, enqueue
from memory_core.store import job_claims, model_usage
from tests.factories import Store, database
from tests.jobs.calling import allow, stopped, usage, working
from tests.jobs.working import add_job, job_of, kind, look, registered

PRICE = Price(input=2_000_000, output=8_000_000, cached=500_000)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = database(tmp_path)
    kinds = (
        kind(uses_model=True),
        kind("test_extra", uses_model=True, is_droppable=True),
        kind("test_plain"),
    )
    with registered(*kinds):
        yield store
    store.close()


def wake(store: Store) -> int:
    with store.transaction() as tx:
        return job_claims.wake(tx, 128)


# --- jobs that wait ---


def test_a_job_handed_back_for_the_budget_waits_for_the_next_day_uncounted(store: Store):
    allow(store, Budget(day=Cap(tokens=60)))
    worker = working(store)
    worker.settle(worker.reserve(60)["call"], used=(50, 10))
    assert worker.reserve(20)["reason"] == "tokens_per_day"

    worker.release(Reason.BUDGET)

    job = job_of(store, worker.job)
    assert (job.state, job.failures, job.waits_for) == (State.PENDING, 0, "budget")
    assert job.not_before == 1_780_012_800_000_000
    store.clock.advance(3 * 3600 + 33 * 60 + 21)
    assert wake(store) == 1
    assert worker.take() == job.id


def test_a_raised_cap_frees_who_waits_at_once(store: Store):
    allow(store, Budget(day=Cap(tokens=50)))
    workers = [working(store, str(number)) for number in range(3)]
    for worker in workers:
        worker.reserve(100)
        worker.release(Reason.BUDGET)

    allow(store, Budget(day=Cap(tokens=1_000)))

    assert stopped(store) == []
    assert [worker.take() is not None for worker in workers] == [True, True, True]
    assert all(worker.reserve(100)["granted"] for worker in workers)


def test_the_same_budget_at_the_next_start_changes_nothing(store: Store):
    budget = Budget(day=Cap(tokens=60))
    allow(store, budget)
    worker = working(store)
    worker.settle(worker.reserve(60)["call"], used=(50, 10))
    worker.reserve(20)
    worker.release(Reason.BUDGET)

    with store.transaction() as tx:
        assert keep_budget(tx, budget) == 0

    assert stopped(store) == ["tokens_per_day"]
    assert job_of(store, worker.job).not_before is not None


def test_pausing_stops_all_and_resuming_frees_who_waits(store: Store):
    worker = working(store)
    assert store.apply(PauseModels(reason="holidays")) == {"paused": True, "changed": True}
    assert store.apply(PauseModels(reason="holidays")) == {"paused": True, "changed": False}

    answer = worker.reserve()
    assert (answer["granted"], answer["reason"], answer["until"]) == (False, "paused", None)
    worker.release(Reason.BUDGET)
    store.clock.advance(60)
    assert (wake(store), worker.take()) == (0, None)
    assert store.apply(ResumeModels()) == {"paused": False, "changed": True, "freed": 1}

    assert worker.take() is not None
    assert worker.reserve()["granted"] is True
    ops = [row["op"] for row in store.all("SELECT op FROM audit_log ORDER BY seq")]
    assert ops[-2:] == ["models_paused", "models_resumed"]


def test_a_restart_with_another_budget_does_not_end_a_person_s_pause(store: Store):
    store.apply(PauseModels())
    allow(store, Budget(day=Cap(tokens=7)))

    assert stopped(store) == ["paused"]


def test_many_waiting_jobs_are_freed_by_and_by(store: Store):
    budget = Budget(day=Cap(tokens=0))
    allow(store, budget)
    count = limits.JOB_EXPIRED_ROWS + 2
    for number in range(count):
        worker = working(store, str(number))
        worker.reserve()
        worker.release(Reason.BUDGET)
    store.clock.advance(1)

    assert store.apply(ResumeModels())["freed"] == limits.JOB_EXPIRED_ROWS
    with store.transaction() as tx:
        assert keep_budget(tx, budget) == 2
    with store.transaction() as tx:
        keep_budget(tx, budget)

    assert store.all("SELECT free_before FROM model_budget") == [{"free_before": None}]
    assert store.all("SELECT count(*) AS n FROM jobs WHERE not_before IS NULL") == [{"n": count}]


def test_a_job_that_a_provider_sends_away_for_money_waits_a_while_though_no_budget_is_reached(store: Store):
    worker = working(store)

    worker.release(Reason.BUDGET)

    job = job_of(store, worker.job)
    assert job.not_before == store.clock.now_us() + round(limits.JOB_BUDGET_SECONDS * 1e6)


# --- the backlog ---


def test_a_full_backlog_leaves_droppable_jobs_out_counts_them_and_never_essential_ones(store: Store):
    allow(store, Budget(backlog_max=3))
    add_job(store, "a")
    add_job(store, "plain", name="test_plain")
    first, second = add_job(store, "b", name="test_extra"), add_job(store, "c", name="test_extra")

    assert add_job(store, "d", name="test_extra") is None
    assert add_job(store, "e") is not None
    assert add_job(store, "d", name="test_extra", is_asked_for=True) is not None
    # What is there already is found, not left out.
    assert add_job(store, "b", name="test_extra") == first
    assert second is not None
    refusals = [dict(row) for row in model_usage.refusals(look(store))]
    assert refusals == [{"kind": "test_extra", "reason": "backlog", "count": 1}]


def test_there_is_room_again_when_a_job_ended(store: Store):
    allow(store, Budget(backlog_max=1))
    worker = working(store)
    add_job(store, "b")
    assert add_job(store, "c", name="test_extra") is None
    worker.finish()
    worker.take()

    with store.transaction() as tx:
        job_id, is_new = enqueue(tx, "test_extra", source_digest=digest_of("c"))
    assert job_id is not None
    assert is_new


# --- old books ---


def test_old_calls_are_forgotten_old_days_folded_and_no_total_falls(store: Store):
    for _ in range(3):
        worker = working(store, str(store.clock.now_us()))
        worker.settle(worker.reserve()["call"], (50, 10))
        worker.finish()
        store.clock.advance(86_400)
    before = model_usage.totals(look(store))
    open_call = working(store, "open").reserve()["call"]

    store.clock.advance(limits.MODEL_USAGE_DAYS * 86_400)
    with store.transaction() as tx:
        tidy_calls(tx)

    assert store.all("SELECT id FROM model_calls") == [{"id": open_call}]
    assert [(row["day"], row["calls"]) for row in usage(store)] == [("", 3)]
    assert model_usage.totals(look(store)) == before
    with store.transaction() as tx:
        assert tidy_calls(tx) == 0


def test_a_reason_that_is_too_long_is_refused(store: Store):
    answer = store.apply(PauseModels(reason="x" * (limits.PAUSE_REASON_MAX_CHARS + 1)))

    assert isinstance(answer, Refusal)
    assert stopped(store) == []

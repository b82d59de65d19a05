"""What becomes of a job, step by step, on a real database with a clock that the test moves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_core import limits
from memory_core.commands.jobs import expire_leases
from memory_core.domain.command import Refusal
from memory_core.domain.job import Failure, Reason, State
from memory_core.store import job_claims
from tests.factories import Store, database
from tests.jobs.working import Sum, Worker, add_job, add_project, job_of, kind, registered


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = database(tmp_path)
    with registered(kind(), kind("test_data", on_data_host=True), kind("test_far", queue="forget")):
        yield store
    store.close()


def expire(store: Store, *, after: float = limits.JOB_LEASE_SECONDS) -> int:
    store.clock.advance(after)
    with store.transaction() as tx:
        return expire_leases(tx)


def wake(store: Store, after: float) -> int:
    store.clock.advance(after)
    with store.transaction() as tx:
        return job_claims.wake(tx, 128)


# --- making one ---


def test_the_same_fact_makes_one_job_whatever_became_of_it(store: Store):
    first = add_job(store, "fact")
    assert add_job(store, "fact") == first

    worker = Worker(store)
    worker.take()
    assert add_job(store, "fact") == first
    worker.finish()

    assert add_job(store, "fact") == first
    assert job_of(store, first).state is State.COMPLETED


def test_another_source_subject_project_or_kind_makes_another_job(store: Store):
    project = add_project(store, "one")

    made = {
        add_job(store, "fact"),
        add_job(store, "other"),
        add_job(store, "fact", subject="session"),
        add_job(store, "fact", project_id=project),
        add_job(store, "fact", name="test_far"),
    }

    assert len(made) == 5


def test_a_new_job_rings_its_queue(store: Store):
    from memory_core.job_kind import digest_of, enqueue

    with store.transaction() as tx:
        enqueue(tx, "test_far", source_digest=digest_of("x"))

        assert tx.rings == {"forget"}


# --- ending ---


def test_a_finished_job_took_effect_in_the_name_of_who_made_it(store: Store):
    job = add_job(store)
    worker = Worker(store)
    worker.take()

    assert worker.finish(Sum(numbers=(3, 4))) == {"state": "completed", "more": False}

    done = job_of(store, job)
    assert done.result == {"sum": 7, "principal": "memoryd", "scope": "admin"}
    assert (done.claim_hash, done.lease_until, done.last_error) == (None, None, None)
    assert done.worker == "worker-1"


def test_the_lease_of_another_worker_finishes_nothing(store: Store):
    job = add_job(store)
    thief, owner = Worker(store, "thief"), Worker(store, "owner")
    owner.take()
    thief.job, thief.claim = job, b"\x01" * 32

    for refused in (thief.renew(), thief.finish(), thief.fail(), thief.release()):
        assert isinstance(refused, Refusal)
        assert refused.code == "stale_lease"
    assert job_of(store, job).state is State.RUNNING


def test_a_worker_that_is_late_but_was_not_replaced_may_finish(store: Store):
    add_job(store)
    worker = Worker(store)
    worker.take()
    store.clock.advance(10 * limits.JOB_LEASE_SECONDS)

    assert worker.finish()["state"] == "completed"


def test_a_worker_that_was_replaced_may_not(store: Store):
    add_job(store)
    late, quick = Worker(store, "late"), Worker(store, "quick")
    late.take()
    expire(store)
    quick.take()

    assert late.finish().code == "stale_lease"
    assert quick.finish()["state"] == "completed"


def test_a_failure_is_tried_again_after_half_a_minute_then_a_minute_then_never(store: Store):
    job = add_job(store)
    worker = Worker(store)

    for failures, pause in ((1, 30), (2, 60)):
        worker.take()
        answer = worker.fail()
        assert answer["state"] == "pending"
        assert answer["retry_after"] is not None
        assert job_of(store, job).failures == failures
        assert wake(store, pause - 1) == 0
        assert worker.take() is None
        assert wake(store, 1) == 1
    worker.take()

    assert worker.fail() == {"state": "failed", "more": False, "retry_after": None}
    assert job_of(store, job).last_error == Failure.CRASHED.sentence
    assert wake(store, 10_000) == 0
    assert worker.take() is None


def test_a_permanent_failure_ends_it_at_once(store: Store):
    job = add_job(store)
    worker = Worker(store)
    worker.take()

    assert worker.fail(Failure.NO_PROVIDER, permanent=True)["state"] == "failed"
    assert job_of(store, job).failures == 1


def test_handing_back_counts_nothing(store: Store):
    job = add_job(store)
    worker = Worker(store)
    for _ in range(10):
        worker.take()
        assert worker.release()["state"] == "pending"

    assert (job_of(store, job).failures, job_of(store, job).claims) == (0, 10)


@pytest.mark.parametrize(
    ("reason", "seconds", "pause"),
    [
        (Reason.CONTENDED, None, limits.JOB_CONTENDED_SECONDS),
        (Reason.BUDGET, 1_000.0, 1_000.0),
        (Reason.PROVIDER_BUSY, 1e9, limits.JOB_PAUSE_MAX_SECONDS),
    ],
)
def test_a_job_that_must_wait_says_for_what(
    store: Store, reason: Reason, seconds: float | None, pause: float
):
    job = add_job(store)
    worker = Worker(store)
    worker.take()
    worker.release(reason, seconds)

    assert job_of(store, job).waits_for == reason.value
    assert wake(store, pause - 1) == 0
    assert wake(store, 1) == 1
    assert job_of(store, job).waits_for is None
    assert worker.take() == job


def test_a_slice_goes_on_from_its_cursor(store: Store):
    job = add_job(store)
    worker = Worker(store)
    worker.take()

    assert worker.finish(Sum(numbers=(5,), mode="again")) == {"state": "pending", "more": True}
    assert job_of(store, job).cursor == {"at": 5}
    assert worker.take() == job
    assert worker.finish()["state"] == "completed"


def test_a_kind_that_has_to_wait_gives_the_job_back(store: Store):
    job = add_job(store)
    worker = Worker(store)
    worker.take()

    assert worker.finish(Sum(mode="later"))["state"] == "pending"
    assert (job_of(store, job).failures, job_of(store, job).waits_for) == (0, "contended")


@pytest.mark.parametrize(
    ("mode", "state", "failure"),
    [("changed", "pending", Failure.SOURCE_CHANGED), ("no", "failed", Failure.REFUSED)],
)
def test_a_refused_output_is_a_failure_with_a_fixed_sentence(store: Store, mode, state, failure):
    job = add_job(store)
    worker = Worker(store)
    worker.take()

    assert worker.finish(Sum(mode=mode))["state"] == state
    assert job_of(store, job).last_error == failure.sentence


def test_an_output_of_another_shape_is_a_failure(store: Store):
    job = add_job(store)
    worker = Worker(store)
    worker.take()

    assert worker.finish({"numbers": "many"})["state"] == "pending"
    assert job_of(store, job).last_error == Failure.OUTPUT.sentence


# --- workers that die ---


def test_a_worker_that_dies_without_a_sign_of_life_is_not_counted_twice_and_then_is(store: Store):
    job = add_job(store)
    worker = Worker(store)
    seen = []
    for _ in range(10):
        if worker.take() is None:
            wake(store, limits.JOB_BACKOFF_MAX_SECONDS)
            if worker.take() is None:
                break
        assert expire(store) == 1
        found = job_of(store, job)
        seen.append((found.deaths, found.failures))

    assert seen == [(1, 0), (2, 0), (2, 1), (2, 2), (2, 3)]
    assert job_of(store, job).state is State.FAILED
    assert job_of(store, job).last_error == Failure.WORKER_DIED.sentence


def test_a_lease_that_was_renewed_and_then_let_go_is_counted(store: Store):
    job = add_job(store)
    worker = Worker(store)
    worker.take()
    store.clock.advance(60)
    worker.renew()

    assert expire(store, after=limits.JOB_LEASE_SECONDS - 1) == 0
    assert expire(store, after=1) == 1
    assert (job_of(store, job).deaths, job_of(store, job).failures) == (0, 1)


def test_renewing_makes_a_lease_last_even_when_it_was_over(store: Store):
    add_job(store)
    worker = Worker(store)
    worker.take()
    store.clock.advance(2 * limits.JOB_LEASE_SECONDS)
    worker.renew()

    with store.transaction() as tx:
        assert expire_leases(tx) == 0


def test_one_turn_takes_a_bounded_number_of_leases(store: Store):
    for number in range(5):
        add_job(store, str(number))
        Worker(store, f"worker-{number}").take()
    store.clock.advance(limits.JOB_LEASE_SECONDS)

    with store.transaction() as tx:
        assert [expire_leases(tx, 2) for _ in range(4)] == [2, 2, 1, 0]

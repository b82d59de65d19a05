"""The writer's leases on jobs: they run out, but not by a clock that was set, and not while nobody could renew them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memory_core import limits
from memory_core.domain.job import Reason
from tests.factories import Store, database
from tests.jobs.working import Worker, add_job, job_of, kind, registered
from workers.writer.jobs import Leases, duties

DAY = 24 * 3600


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = database(tmp_path)
    with registered(kind()):
        yield store
    store.close()


def turn(store: Store, work: Any) -> int:
    with store.transaction() as tx:
        return work(tx)


@pytest.fixture
def leases(store: Store) -> Leases:
    """After the writer has been up for a while."""
    leases = Leases(store.clock)
    store.clock.advance(limits.JOB_START_GRACE_SECONDS)
    return leases


def test_a_lease_that_is_over_is_found(store: Store, leases: Leases):
    job = add_job(store)
    Worker(store).take()
    store.clock.advance(limits.JOB_LEASE_SECONDS)

    assert turn(store, leases.expire) == 1
    assert job_of(store, job).state.value == "pending"


def test_nothing_expires_while_workers_had_no_writer_to_renew_with(store: Store):
    add_job(store)
    worker = Worker(store)
    worker.take()
    store.clock.advance(10 * limits.JOB_LEASE_SECONDS)
    leases = Leases(store.clock)

    assert turn(store, leases.expire) == 0
    store.clock.advance(limits.JOB_RENEW_SECONDS)
    assert worker.renew()["cancel"] is False
    store.clock.advance(limits.JOB_START_GRACE_SECONDS)
    assert turn(store, leases.expire) == 0


@pytest.mark.parametrize("seconds", [DAY, -DAY, 31, -31])
def test_a_clock_that_was_set_ends_no_lease_and_lets_none_last_for_ever(
    store: Store, leases: Leases, seconds
):
    job = add_job(store)
    Worker(store).take()
    store.clock.set_wall(seconds)

    assert turn(store, leases.expire) == 0
    store.clock.advance(limits.JOB_LEASE_SECONDS - 1)
    assert turn(store, leases.expire) == 0
    assert job_of(store, job).state.value == "running"
    store.clock.advance(1)
    assert turn(store, leases.expire) == 1


def test_a_pause_does_not_last_a_day_because_the_clock_went_back_a_day(store: Store, leases: Leases):
    add_job(store)
    worker = Worker(store)
    worker.take()
    worker.fail()
    store.clock.set_wall(-DAY)
    turn(store, leases.expire)
    wake = next(duty.work for duty in duties({}, store.clock) if duty.name == "wake_jobs")

    store.clock.advance(limits.JOB_BACKOFF_MAX_SECONDS)

    assert turn(store, wake) == 1
    assert worker.take() is not None


@pytest.mark.parametrize("seconds", [DAY, -DAY])
def test_a_step_that_was_seen_by_a_transaction_that_failed_is_not_forgotten(
    store: Store, leases: Leases, seconds
):
    job = add_job(store)
    worker = Worker(store)
    worker.take()
    store.clock.set_wall(seconds)

    def failing(tx: Any) -> int:
        leases.expire(tx)
        raise RuntimeError("the disk is full")

    with pytest.raises(RuntimeError):
        turn(store, failing)
    store.clock.advance(1)
    turn(store, leases.expire)
    worker.renew()
    store.clock.advance(limits.JOB_LEASE_SECONDS - 1)
    assert turn(store, leases.expire) == 0
    store.clock.advance(1)

    assert turn(store, leases.expire) == 1
    assert job_of(store, job).failures == 1


def test_a_long_pause_outlives_a_start_of_the_writer(store: Store):
    job = add_job(store)
    worker = Worker(store)
    worker.take()
    worker.release(Reason.BUDGET, limits.JOB_PAUSE_MAX_SECONDS)
    before = job_of(store, job).not_before

    turn(store, Leases(store.clock).expire)

    assert job_of(store, job).not_before == before


def test_a_small_correction_changes_nothing(store: Store, leases: Leases):
    add_job(store)
    Worker(store).take()
    store.clock.set_wall(29)
    store.clock.advance(limits.JOB_LEASE_SECONDS - 29)

    assert turn(store, leases.expire) == 1

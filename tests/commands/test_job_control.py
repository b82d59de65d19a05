"""What people do about jobs: cancel, try again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_core import limits
from memory_core.commands.job_control import CancelJob, RetryJob
from memory_core.commands.jobs import expire_leases
from memory_core.domain.job import Reason, State
from memory_core.ids import id_text
from tests.factories import Store, database
from tests.jobs.working import Sum, Worker, add_job, job_of, kind, registered


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = database(tmp_path)
    with registered(kind(), kind("test_data", on_data_host=True), kind("test_far", queue="forget")):
        yield store
    store.close()


def expire(store: Store) -> None:
    store.clock.advance(limits.JOB_LEASE_SECONDS)
    with store.transaction() as tx:
        expire_leases(tx)


def test_a_pending_job_is_cancelled_at_once(store: Store):
    job = add_job(store)

    assert store.apply(CancelJob(job=id_text(job)))["state"] == "cancelled"
    assert Worker(store).take() is None


@pytest.mark.parametrize("way", ["release", "fail", "again", "expiry"])
def test_a_running_job_is_cancelled_when_its_worker_lets_go(store: Store, way: str):
    job = add_job(store)
    worker = Worker(store)
    worker.take()

    assert store.apply(CancelJob(job=id_text(job))) == {
        "id": id_text(job),
        "kind": "test_sum",
        "state": "running",
        "cancel_asked": True,
    }
    assert worker.renew()["cancel"] is True
    match way:
        case "release":
            worker.release(Reason.CANCELLED)
        case "fail":
            worker.fail()
        case "again":
            worker.finish(Sum(mode="again"))
        case _:
            expire(store)

    assert job_of(store, job).state is State.CANCELLED
    assert job_of(store, job).failures == 0


def test_a_job_that_is_done_before_it_hears_of_the_cancel_is_done(store: Store):
    job = add_job(store)
    worker = Worker(store)
    worker.take()
    store.apply(CancelJob(job=id_text(job)))

    assert worker.finish()["state"] == "completed"


def test_what_has_ended_cannot_be_cancelled(store: Store):
    job = add_job(store)
    worker = Worker(store)
    worker.take()
    worker.finish()

    assert store.apply(CancelJob(job=id_text(job))).code == "conflict"


@pytest.mark.parametrize("ended", ["failed", "cancelled"])
def test_a_job_that_failed_or_was_cancelled_is_tried_again_as_the_same_job(store: Store, ended: str):
    job = add_job(store)
    worker = Worker(store)
    worker.take()
    if ended == "failed":
        worker.fail(permanent=True)
    else:
        store.apply(CancelJob(job=id_text(job)))
        worker.release()

    assert store.apply(RetryJob(job=id_text(job)))["state"] == "pending"
    again = job_of(store, job)
    assert (again.failures, again.deaths, again.last_error, again.cancel_asked_at) == (0, 0, None, None)
    assert worker.take() == job


@pytest.mark.parametrize("state", ["pending", "running", "completed"])
def test_nothing_else_is_tried_again(store: Store, state: str):
    job = add_job(store)
    worker = Worker(store)
    if state != "pending":
        worker.take()
    if state == "completed":
        worker.finish()

    assert store.apply(RetryJob(job=id_text(job))).code == "conflict"


def test_a_job_that_is_not_there_says_so(store: Store):
    assert store.apply(RetryJob(job=id_text(b"\x07" * 16))).code == "not_found"
    assert store.apply(CancelJob(job="nonsense")).code == "invalid"

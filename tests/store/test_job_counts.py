"""The counts of jobs are those of the rows, whatever happens to them, and are read without counting."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_core import limits
from memory_core.commands.job_control import CancelJob, RetryJob
from memory_core.commands.jobs import expire_leases
from memory_core.domain.job import State
from memory_core.ids import id_text
from memory_core.store import job_counts
from tests.factories import Store, database
from tests.jobs.working import Sum, Worker, add_job, add_project, kind, look, registered


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = database(tmp_path)
    with registered(kind(), kind("test_far", queue="forget")):
        yield store
    store.close()


def counted(store: Store) -> dict[tuple[str, str, str], int]:
    """What a count of all rows gives."""
    rows = store.all("SELECT queue, kind, state, count(*) AS n FROM jobs GROUP BY queue, kind, state")
    return {(row["queue"], row["kind"], row["state"]): row["n"] for row in rows}


def told(store: Store) -> dict[tuple[str, str, str], int]:
    return {(c.queue, c.kind, c.state.value): c.count for c in job_counts.present(look(store))}


def total(store: Store, event: str, name: str = "test_sum") -> int:
    return sum(t.count for t in job_counts.totals(look(store)) if (t.kind, t.event) == (name, event))


def step(store: Store, worker: Worker, what: str, number: int) -> None:
    if what == "add":
        add_job(store, str(number), name=("test_sum", "test_far")[number % 2])
    elif what == "claim":
        worker.take()
    elif what == "expire":
        store.clock.advance(limits.JOB_LEASE_SECONDS)
        with store.transaction() as tx:
            expire_leases(tx)
    elif what in ("cancel", "retry"):
        ids = [id_text(row["id"]) for row in store.all("SELECT id FROM jobs ORDER BY id")]
        if ids:
            job = ids[number % len(ids)]
            store.apply(CancelJob(job=job) if what == "cancel" else RetryJob(job=job))
    elif what == "fail":
        worker.fail()
    elif what == "give up":
        worker.fail(permanent=True)
    elif what == "release":
        worker.release()
    else:
        worker.finish(Sum(mode=what))


STEPS = ("add", "claim", "done", "again", "fail", "give up", "release", "expire", "cancel", "retry")


@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 9)), max_size=40))
@settings(max_examples=60, deadline=None)
def test_the_counts_are_those_of_the_rows_after_every_step(steps: list[tuple[str, int]]) -> None:
    with tempfile.TemporaryDirectory() as directory, registered(kind(), kind("test_far", queue="forget")):
        store = database(Path(directory))
        try:
            worker = Worker(store, queues=("lint", "forget"))
            for what, number in [("add", 0), ("add", 1), *steps]:
                step(store, worker, what, number)
                assert told(store) == counted(store)
        finally:
            store.close()


def test_a_project_that_goes_takes_its_jobs_out_of_the_counts_but_not_out_of_the_totals(store: Store) -> None:
    add_job(store, "1", project_id=add_project(store, "one"))
    add_job(store, "2")
    with store.transaction():
        store.connection.execute("DELETE FROM projects")

    assert told(store) == counted(store) == {("lint", "test_sum", "pending"): 1}
    assert total(store, "pending") == 2


def test_claims_failures_and_ends_are_counted_for_ever(store: Store) -> None:
    worker = Worker(store)
    add_job(store, "1")
    worker.take()
    worker.fail()
    add_job(store, "2")
    worker.take()
    worker.fail(permanent=True)
    add_job(store, "3")
    worker.take()
    worker.finish()

    assert [total(store, e) for e in ("running", "failure", "failed", "completed")] == [3, 2, 1, 1]


def test_the_oldest_of_each_kind_is_told(store: Store) -> None:
    first = store.clock.now_us()
    add_job(store, "1")
    store.clock.advance(60)
    add_job(store, "2")
    second = store.clock.now_us()
    add_job(store, "3", name="test_far")

    found = {c.kind: c.oldest_at for c in job_counts.present(look(store))}

    assert abs(found["test_sum"] - first) < 1_000
    assert abs(found["test_far"] - second) < 1_000


def test_a_job_that_waits_is_pending_but_not_due(store: Store) -> None:
    worker = Worker(store)
    add_job(store, "1")
    worker.take()
    worker.fail()
    assert job_counts.due(look(store)) == {}

    add_job(store, "2")
    assert job_counts.due(look(store))["lint"].count == 1
    assert told(store)["lint", "test_sum", "pending"] == 2


def test_failed_jobs_are_found_by_the_time_at_which_they_failed(store: Store) -> None:
    worker = Worker(store)
    long_ago = add_job(store, "1")
    lately = add_job(store, "2")
    worker.take()
    worker.fail(permanent=True)
    store.clock.advance(3_600)
    since = store.clock.now_us()
    worker.take()
    worker.fail(permanent=True)

    assert [row.job.id for row in job_counts.failed_since(look(store), since, 10)] == [lately]
    assert [row.job.id for row in job_counts.failed_since(look(store), 0, 10)] == [lately, long_ago]

    store.apply(RetryJob(job=id_text(lately)))
    assert job_counts.failed_since(look(store), since, 10) == []


def plan(store: Store, statement: object, **parameters: object) -> str:
    sql = "EXPLAIN QUERY PLAN " + statement.sql  # type: ignore[attr-defined]
    return "\n".join(row["detail"] for row in store.connection.execute(sql, parameters).fetchall())


def test_nothing_that_is_asked_often_looks_at_jobs_that_have_ended(store: Store) -> None:
    present = plan(store, job_counts._PRESENT)
    assert (
        "SEARCH j USING COVERING INDEX ix_jobs_queue_state_kind_id (queue=? AND state=? AND kind=?)"
        in present
    )
    assert "SCAN j" not in present
    assert "jobs" not in plan(store, job_counts._TOTALS).replace("job_counts", "")
    # These two walk a partial index, in which no other job stands.
    assert "ix_jobs_ready" in plan(store, job_counts._DUE)
    took = plan(store, job_counts._TOOK, queue="lint", kind="k", last=1)
    assert "ix_jobs_queue_state_kind_id (queue=? AND state=? AND kind=?)" in took
    assert "SEARCH j USING INDEX ix_jobs_failed (finished_at>?)" in plan(
        store, job_counts._FAILED, since=0, limit=1
    )


def test_counts_of_a_state_that_nothing_is_in_any_more_are_left_out(store: Store) -> None:
    add_job(store, "1")
    Worker(store).take()

    assert [c.state for c in job_counts.present(look(store))] == [State.RUNNING]

"""The tables of jobs: what their checks refuse, and that a claim looks nothing through."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memory_core.domain.job import Failure, State
from memory_core.errors import StorageFailed
from memory_core.store import job_claims, jobs
from memory_core.store.database import translated
from memory_core.store.driver import Error
from tests.factories import Store, database
from tests.jobs.working import Worker, add_job, add_project, job_of, kind, registered

HASH = b"\x01" * 32


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = database(tmp_path)
    with registered(kind(), kind("test_data", on_data_host=True), kind("test_far", queue="forget")):
        yield store
    store.close()


def in_state(store: Store, state: str) -> bytes:
    """A job that came into that state by the steps there are, with a failure behind it where that is possible."""
    job = add_job(store, state)
    worker = Worker(store)
    if state in ("running", "completed", "failed"):
        worker.take()
    if state == "completed":
        worker.finish()
    if state == "failed":
        worker.fail(Failure.CRASHED, permanent=True)
    if state == "cancelled":
        store.connection.execute("UPDATE jobs SET state = 'cancelled', finished_at = 1 WHERE id = ?", (job,))
    return job


PLANTED: list[tuple[str, dict[str, Any]]] = [
    # a claim without a runner, a runner without a claim
    ("pending", {"claim_hash": HASH}),
    ("pending", {"lease_until": 1}),
    ("pending", {"renewed_at": 1}),
    ("running", {"claim_hash": None}),
    ("running", {"claim_hash": b"short"}),
    ("running", {"lease_until": None}),
    ("running", {"worker": None}),
    ("running", {"claimed_at": None}),
    ("running", {"claims": 0}),
    ("completed", {"claim_hash": HASH}),
    ("failed", {"lease_until": 1}),
    # failures and their sentence
    ("pending", {"last_error": "a sentence"}),
    ("pending", {"failures": 1}),
    ("running", {"failures": 1}),
    ("failed", {"failures": 0}),
    ("failed", {"failures": 0, "last_error": None}),
    ("failed", {"last_error": None}),
    ("completed", {"last_error": "a sentence", "failures": 1}),
    ("pending", {"failures": 1, "last_error": "x" * 4_097}),
    ("pending", {"failures": -1}),
    ("pending", {"deaths": -1}),
    # pauses
    ("pending", {"not_before": 1}),
    ("pending", {"waits_for": "budget"}),
    ("pending", {"not_before": 1, "waits_for": "retry"}),
    ("running", {"not_before": 1, "waits_for": "budget"}),
    ("failed", {"not_before": 1, "waits_for": "retry"}),
    # ends
    ("pending", {"finished_at": 1}),
    ("running", {"finished_at": 1}),
    ("completed", {"finished_at": None}),
    ("failed", {"finished_at": None}),
    ("cancelled", {"finished_at": None}),
    ("completed", {"result": None}),
    ("completed", {"result": '"' + "x" * 4_095 + '"'}),
    ("failed", {"result": "{}"}),
    ("pending", {"result": "{}"}),
    # a wish to cancel that nobody can hear
    ("pending", {"cancel_asked_at": 1}),
    ("completed", {"cancel_asked_at": 1}),
    ("failed", {"cancel_asked_at": 1}),
    # what it is
    ("pending", {"state": "discarded"}),
    ("pending", {"state": "completed", "result": "{}", "finished_at": 1}),
    ("pending", {"scope": b"\x02" * 16}),
    ("pending", {"source_digest": b"short"}),
]


@pytest.mark.parametrize(("state", "planted"), PLANTED)
def test_what_may_not_stand_together_is_refused(store: Store, state: str, planted: dict[str, Any]):
    job = in_state(store, state)
    before = store.all("SELECT * FROM jobs")

    with pytest.raises(StorageFailed, match="CHECK"):
        plant(store, job, planted)

    assert store.all("SELECT * FROM jobs") == before


@pytest.mark.parametrize("state", list(State))
def test_what_the_steps_leave_is_accepted(store: Store, state: State):
    job = in_state(store, state.value)

    plant(store, job, {"subject": "another"})

    assert job_of(store, job).state is state


def plant(store: Store, job: bytes, values: dict[str, Any]) -> None:
    changes = ", ".join(f"{name} = ?" for name in values)
    try:
        store.connection.execute(f"UPDATE jobs SET {changes} WHERE id = ?", (*values.values(), job))
    except Error as error:
        raise translated(error) from error


def test_two_jobs_of_one_fact_cannot_be(store: Store):
    one, other = add_job(store, "a"), add_job(store, "b")

    with pytest.raises(StorageFailed, match="UNIQUE"):
        plant(store, one, {"source_digest": job_of(store, other).source_digest})


def test_jobs_go_with_their_project(store: Store):
    project = add_project(store, "gone")
    add_job(store, project_id=project)
    running = Worker(store)
    running.take()

    store.connection.execute("DELETE FROM projects WHERE id = ?", (project,))

    assert store.all("SELECT 1 FROM jobs") == []
    assert running.finish().code == "stale_lease"


def test_projects_without_a_due_job_leave_the_line(store: Store):
    one, two = add_project(store, "one"), add_project(store, "two")
    add_job(store, project_id=one)
    waiting = add_job(store, project_id=two)
    worker = Worker(store)
    worker.take()
    worker.finish()
    with store.transaction() as tx:
        assert job_claims.forget_turns(tx, 10) == 1

    assert [row["scope"] for row in store.all("SELECT scope FROM job_turns")] == [two]
    assert worker.take() == waiting


# --- a hundred thousand ---


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A hundred thousand pending jobs of a hundred projects, half of them waiting for their pause to end."""
    store = database(tmp_path_factory.mktemp("crowd"))
    with registered(kind(), kind("test_data", on_data_host=True)):
        ids = [add_project(store, f"p{number}") for number in range(100)]
        model = add_job(store, "model", project_id=ids[0])
        columns = [row["name"] for row in store.all("PRAGMA table_info(jobs)")]
        row = store.all("SELECT * FROM jobs WHERE id = ?", model)[0]
        rows = []
        for number in range(100_000):
            project = ids[number % 100]
            waits = number % 200 < 100
            rows.append(
                row
                | {
                    "id": store.ids.new(),
                    "project_id": project,
                    "scope": project,
                    "source_digest": number.to_bytes(32, "big"),
                    "on_data_host": number // 100 % 2,
                    "not_before": 2**60 if waits else None,
                    "waits_for": "budget" if waits else None,
                }
            )
        store.connection.execute("BEGIN")
        store.connection.executemany(
            f"INSERT INTO jobs VALUES ({', '.join(':' + name for name in columns)})", rows
        )
        store.connection.executemany(
            "INSERT OR IGNORE INTO job_turns VALUES ('lint', ?, ?)", [(p, n) for n, p in enumerate(ids)]
        )
        store.connection.execute("COMMIT")
        yield store
    store.close()


class Explained:
    """A reading that notes how SQLite would answer each question that is asked through it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.plans: list[str] = []

    def row(self, statement: Any, **parameters: Any) -> Any:
        return next(iter(self.rows(statement, **parameters)), None)

    def rows(self, statement: Any, **parameters: Any) -> Any:
        values = statement.parameters(parameters)
        plan = self._store.connection.execute(f"EXPLAIN QUERY PLAN {statement.sql}", values).fetchall()
        self.plans += [row["detail"] for row in plan]
        return self._store.connection.execute(statement.sql, values).fetchall()


@pytest.mark.parametrize("on_data_host", [True, False])
def test_a_claim_is_a_look_up_however_many_wait(crowd: Store, on_data_host: bool):
    asked = Explained(crowd)

    assert job_claims.next_ready(asked, "lint", on_data_host=on_data_host) is not None
    assert job_claims.next_ready(asked, "forget", on_data_host=on_data_host) is None

    assert any("ix_jobs_ready" in step for step in asked.plans)
    assert [step for step in asked.plans if "SCAN" in step or "TEMP B-TREE" in step] == []


@pytest.mark.parametrize(
    "question",
    [
        lambda read: job_claims.expired(read, 1, 128),
        lambda read: jobs.pending_like(read, queue="lint", kind="test_sum", project_id=None),
        lambda read: jobs.listed(read, state=State.PENDING, limit=50),
        lambda read: jobs.listed(read, project_id=b"\x01" * 16, limit=50),
        lambda read: jobs.listed(read, limit=50),
    ],
)
def test_other_questions_go_by_an_index_too(crowd: Store, question: Any):
    asked = Explained(crowd)

    question(asked)

    assert [step for step in asked.plans if step == "SCAN jobs" or "TEMP B-TREE" in step] == []


def test_the_steps_of_a_claim_touch_few_rows(crowd: Store):
    worker = Worker(crowd)
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    crowd.connection.set_progress_handler(count, 100)
    try:
        assert worker.take() is not None
        worker.finish()
    finally:
        crowd.connection.set_progress_handler(None, 0)

    # Hundreds of SQLite's own steps; one look through the table would be hundreds of thousands.
    assert steps < 100

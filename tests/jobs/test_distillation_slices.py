"""A distillation that found much: entered in slices that no writer waits for long, each of which may be the last of its process."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memory_core import job_kind, limits
from memory_core.commands.durable_deletion import DeleteSession
from memory_core.commands.job_control import CancelJob, RetryJob
from memory_core.commands.jobs import expire_leases
from memory_core.domain.distillation import Upsert, is_one_slice
from memory_core.domain.job import State
from memory_core.ids import id_text
from memory_core.jobs import distillation
from memory_core.store import compactions
from memory_core.store.database import open_writer
from tests.factories import Store, database
from tests.jobs.test_distillation import Model, closed, compute, facts, tombstone, upsert, wake, worker
from tests.jobs.working import Worker, job_of, look

MOST = limits.DISTILLATION_CANDIDATES_MAX
PER_SLICE = limits.CANDIDATES_PER_SLICE
SLICES = MOST // PER_SLICE
#: Whatever a database has of its own: ids, and times.
_OWN = ("id", "_id", "_at", "sha256", "digest")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = database(tmp_path)
    yield store
    store.close()


def found(count: int = MOST) -> list[dict[str, Any]]:
    return [upsert(f"key {at}", f"It is {at}.") for at in range(count)]


def slice_of(store: Store, model: Any, one: Worker | None = None) -> str:
    """Claim, compute and finish once; the job's state."""
    one = one or worker(store)
    job_id = one.take()
    assert job_id is not None
    return one.finish(compute(store, job_id, model))["state"]


def to_the_end(store: Store, model: Any) -> int:
    """How many commands it took."""
    count = 1
    while slice_of(store, model) == "pending":
        count += 1
    return count


def entered(store: Store) -> int:
    return store.all("SELECT count(*) AS n FROM distillation_results")[0]["n"]


def left(store: Store) -> int:
    return store.all("SELECT count(*) AS n FROM distillation_candidates")[0]["n"]


def known(store: Store) -> list[dict[str, Any]]:
    """All that distillations left behind, but for ids and times."""
    rows = [
        *store.all("SELECT * FROM knowledge ORDER BY key"),
        *store.all(
            "SELECT k.key, v.* FROM knowledge_versions v JOIN knowledge k ON k.id = v.knowledge_id"
            " ORDER BY k.key, v.version"
        ),
        *store.all(
            "SELECT k.key, t.origin, t.confidence, t.candidate_index FROM knowledge_tombstones t"
            " JOIN knowledge k ON k.id = t.knowledge_id ORDER BY k.key"
        ),
        *store.all("SELECT * FROM distillation_results ORDER BY candidate_index"),
        *store.all("SELECT path, pinned FROM pages WHERE tombstoned_at IS NULL ORDER BY path"),
    ]
    return [
        {
            name: value
            for name, value in row.items()
            if not name.endswith(_OWN) and name not in ("host", "path")
        }
        for row in rows
    ]


def test_much_is_entered_slice_by_slice_and_the_job_ends_with_the_last_one(store: Store):
    _, job_id = closed(store)
    model = Model(finds=found())

    assert slice_of(store, model) == "pending"
    assert (entered(store), left(store)) == (0, MOST)
    for number in range(1, SLICES):
        assert slice_of(store, model) == "pending"
        assert (entered(store), left(store)) == (number * PER_SLICE, MOST - number * PER_SLICE)
        row = compactions.distillation(look(store), job_id)
        assert row is not None
        assert row["completed_at"] is None
    assert slice_of(store, model) == "completed"

    assert facts(store) == {f"key {at}": f"It is {at}." for at in range(MOST)}
    assert left(store) == 0
    assert job_of(store, job_id).result == {
        "made_by": "model",
        "through_sequence": 2,
        "upserted": MOST,
        "tombstoned": 0,
        "skipped": 0,
    }
    assert len(model.asked) == 1


def test_slices_leave_what_one_command_would_have_left(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "whole").mkdir()
    whole = database(tmp_path / "whole")
    mixed = [
        *(tombstone(f"old {at}") for at in range(20)),
        upsert("a", "The key is [REDACTED:api_key:ab12]."),
        *found(60),
        *(tombstone(f"nothing of that name {at}") for at in range(10)),
    ]
    for one in (store, whole):
        closed(one)
        to_the_end(one, Model(finds=[upsert(f"old {at}") for at in range(20)]))
        closed(one, "Remember that much has changed since.")

    assert to_the_end(store, Model(finds=mixed)) > 2
    monkeypatch.setattr(limits, "CANDIDATES_PER_SLICE", MOST)
    assert to_the_end(whole, Model(finds=mixed)) == 1

    assert known(store) == known(whole)
    assert len(known(store)) > 200
    results = [one.all("SELECT result FROM jobs ORDER BY created_at") for one in (store, whole)]
    assert results[0] == results[1]
    whole.close()


@pytest.mark.parametrize("count", [1, PER_SLICE])
def test_what_one_command_may_enter_is_not_kept_first(store: Store, count: int):
    closed(store)

    assert to_the_end(store, Model(finds=found(count))) == 1
    assert len(facts(store)) == count


def test_long_facts_are_entered_by_their_bytes(store: Store):
    closed(store)
    long = "x" * (limits.CANDIDATES_PER_SLICE_BYTES // 2)
    finds = [upsert("longest", "y" * 3 * len(long)), *(upsert(f"key {at}", long) for at in range(3))]

    # Kept; then the one that is longer than a slice alone, and one of half a slice at a time, for JSON has its frame.
    assert to_the_end(store, Model(finds=finds)) == 1 + 4
    assert len(facts(store)) == 4


def test_a_single_fact_is_one_slice_however_long_it_is():
    of_slice = Upsert(key="a", content="x" * limits.CANDIDATES_PER_SLICE_BYTES, confidence=1.0)

    assert is_one_slice([])
    assert is_one_slice([of_slice])
    assert is_one_slice(
        [Upsert(key="a", content="x" * (limits.CANDIDATES_PER_SLICE_BYTES + 1), confidence=1.0)]
    )
    assert not is_one_slice([of_slice, Upsert(key="b", content="x", confidence=1.0)])


def test_another_worker_goes_on_where_one_went_silent(store: Store):
    _, job_id = closed(store)
    model = Model(finds=found())
    slice_of(store, model)
    slice_of(store, model)
    worker(store).take()
    store.clock.advance(limits.JOB_LEASE_SECONDS + 1)
    with store.transaction() as tx:
        expire_leases(tx)

    other = Worker(store, name="worker-2", queues=("distillation",))
    assert slice_of(store, model, other) == "pending"
    assert entered(store) == 2 * PER_SLICE
    to_the_end(store, model)

    assert len(facts(store)) == MOST
    assert len(model.asked) == 1
    assert job_of(store, job_id).failures == 0


def test_what_a_worker_says_of_a_later_slice_does_not_count(store: Store):
    closed(store)
    slice_of(store, Model(finds=found()))
    one = worker(store)
    one.take()

    made_up = distillation.Found(candidates=(upsert("made up"),), made_by="rules")
    assert one.finish(made_up)["state"] == "pending"
    to_the_end(store, Model())

    assert "made up" not in facts(store)
    assert store.all("SELECT made_by FROM distillations") == [{"made_by": "model"}]


def test_who_claims_the_session_between_two_slices_comes_first(store: Store):
    agent, job_id = closed(store)
    model = Model(finds=found())
    slice_of(store, model)
    slice_of(store, model)
    agent.claim()

    assert worker(store).take() is None
    assert entered(store) == PER_SLICE
    assert job_of(store, job_id).failures == 0

    agent.release()
    wake(store, 31)
    to_the_end(store, model)
    assert len(facts(store)) == MOST


def test_what_waits_goes_with_the_session_and_what_was_entered_stays(store: Store):
    agent, job_id = closed(store)
    slice_of(store, Model(finds=found()))
    slice_of(store, Model())

    assert store.apply(DeleteSession(session=agent.session))["deleted"] is True

    assert left(store) == 0
    assert len(facts(store)) == PER_SLICE
    versions = store.all("SELECT DISTINCT provenance_session_id, job_id FROM knowledge_versions")
    assert versions == [{"provenance_session_id": agent.session, "job_id": job_id}]


def test_a_job_that_was_cancelled_half_way_goes_on_when_it_is_retried(store: Store):
    _, job_id = closed(store)
    model = Model(finds=found())
    slice_of(store, model)
    slice_of(store, model)
    store.apply(CancelJob(job=id_text(job_id)))
    assert job_of(store, job_id).state is State.CANCELLED

    store.apply(RetryJob(job=id_text(job_id)))
    to_the_end(store, model)

    assert len(facts(store)) == MOST
    assert len(model.asked) == 1


@pytest.mark.parametrize("at", ["before its commit", "behind its commit"])
@pytest.mark.parametrize("slice_number", [0, 1, SLICES])
def test_a_writer_that_is_killed_at_any_slice_loses_and_doubles_nothing(
    tmp_path: Path, at: str, slice_number: int
):
    """SIGKILL in a process of its own, once the slice is applied or once it is committed; another one goes on from the database."""
    for name in ("killed", "whole"):
        (tmp_path / name).mkdir()
    whole, store = database(tmp_path / "whole"), database(tmp_path / "killed")
    model = Model(finds=found())
    for one in (whole, store):
        closed(one)
    to_the_end(whole, model)
    store.connection.close()

    child = os.fork()
    if not child:
        _work_until_killed(store, slice_number, at)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL

    store.connection = open_writer(store.path)
    committed = slice_number + (at == "behind its commit")
    assert entered(store) == max(0, committed - 1) * PER_SLICE
    store.clock.advance(limits.JOB_LEASE_SECONDS + 1)
    with store.transaction() as tx:
        expire_leases(tx)
    if committed <= SLICES:
        to_the_end(store, model)
    assert known(store) == known(whole)
    assert left(store) == 0
    whole.close()
    store.close()


def _work_until_killed(store: Store, slice_number: int, at: str) -> None:
    """In the child: so many slices, and death in the next one. Never returns."""
    try:
        store.connection = open_writer(store.path)
        model = Model(finds=found())
        for _ in range(slice_number):
            slice_of(store, model)
        if at == "before its commit":
            real = distillation.apply

            def killed(*given: Any) -> Any:
                real(*given)
                os.kill(os.getpid(), signal.SIGKILL)

            object.__setattr__(job_kind.kinds.get("distillation"), "apply", killed)
        slice_of(store, model)
        os.kill(os.getpid(), signal.SIGKILL)
    finally:
        os._exit(1)

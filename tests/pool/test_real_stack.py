"""Pool workers in the real stack, killed, doubled, paused and never rung: every job takes effect exactly once."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pool.one_slot import noted_pid
from tests.pool.whole_stack import Stack, whole_stack
from tests.stack.conftest import is_alive, wait_until

pytestmark = [pytest.mark.stack, pytest.mark.kills]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with whole_stack(tmp_path_factory.mktemp("pool")) as made:
        yield made


def test_a_job_goes_through_the_whole_stack(stack: Stack):
    for kind in ("probe", "probe_inline", "probe_forget", "probe_data"):
        stack.wait_completed(stack.enqueue(text="x", kind=kind))


@pytest.mark.parametrize("step", ["claimed", "computed", "finished"])
def test_a_worker_killed_at_a_step_leaves_a_job_that_takes_effect_once(stack: Stack, step: str):
    pool = stack.pool
    stack.arm(step)

    subjects = stack.enqueue(count=2)
    stack.wait_new_pool(pool)

    stack.wait_completed(subjects)
    claims = [stack.column(subject, "claims") for subject in subjects]
    # What was killed after its end was told is not done again.
    assert sorted(claims) == ([1, 1] if step == "finished" else [1, 2])


def test_a_worker_killed_in_a_computation_takes_its_child_along_and_the_job_is_done_by_the_next(
    stack: Stack, tmp_path: Path
):
    notes, go = tmp_path / "notes", tmp_path / "go"
    (subject,) = stack.enqueue("wait for a file", str(go), str(notes))
    child, pool = noted_pid(notes), stack.pool

    os.kill(pool, signal.SIGKILL)
    wait_until(lambda: not is_alive(child))
    go.touch()

    stack.wait_completed([subject])


def test_a_job_that_kills_its_worker_ends_after_its_tries(stack: Stack):
    pool = stack.pool
    os.kill(pool, signal.SIGSTOP)  # its supervisor would start it again with growing pauses
    (subject,) = stack.enqueue("kill the worker")
    codes = []
    try:
        while stack.column(subject, "state") != "failed":
            code = _die_of(stack, subject, f"victim-{len(codes)}")
            codes += [code] if code is not None else []
    finally:
        os.kill(pool, signal.SIGCONT)

    deaths, failures, claims = (stack.column(subject, name) for name in ("deaths", "failures", "claims"))
    # A claim counts at once where its worker lived long enough for a renewal.
    assert (claims, failures, deaths <= 1) == (deaths + failures, 2, True)
    # The stopped worker may have claimed it in its last moment.
    assert set(codes) == {-signal.SIGKILL}
    assert claims - len(codes) in (0, 1)
    assert "silent" in stack.column(subject, "last_error")
    stack.wait_completed(stack.enqueue())


def _die_of(stack: Stack, subject: str, name: str) -> int | None:
    """One worker, until the job killed it, or is over; how it ended."""
    worker = stack.worker(name, pool_queues=("lint",), quick=",POOL_LOOK_SECONDS=0.2")
    try:
        wait_until(
            lambda: worker.process.poll() is not None or stack.column(subject, "state") == "failed", 30
        )
        return worker.process.poll()
    finally:
        worker.close()


def test_doubled_workers_do_each_job_once(stack: Stack):
    others = [stack.worker(name, pool_slots=2) for name in ("one", "two")]
    try:
        for other in others:
            other.wait_ready()
        subjects = stack.enqueue(count=60)
        stack.wait_completed(subjects)
        workers = {worker for (worker,) in stack.rows("SELECT worker FROM jobs WHERE state = 'completed'")}
        assert {stack.column(subject, "claims") for subject in subjects} == {1}
        assert {"one", "two"} & workers
    finally:
        for other in others:
            other.close()


def test_a_worker_paused_past_its_lease_does_not_end_the_job_of_another(stack: Stack, tmp_path: Path):
    notes, go = tmp_path / "notes", tmp_path / "go"
    paused = stack.worker("paused", pool_queues=("forget",)).wait_ready()
    other = stack.worker("other", pool_queues=("forget",), quick=",POOL_LOOK_SECONDS=0.5")
    os.kill(stack.pool, signal.SIGSTOP)
    try:
        (subject,) = stack.enqueue("wait for a file", str(go), str(notes), kind="probe_forget")
        stack.wait_running(subject)
        holder = stack.column(subject, "worker")
        first, second = (paused, other) if holder == "paused" else (other, paused)
        first.send(signal.SIGSTOP)
        second.wait_ready()
        wait_until(lambda: stack.column(subject, "worker") == second.settings.worker_name)
        go.touch()
        stack.wait_completed([subject])
        first.send(signal.SIGCONT)
        wait_until(lambda: first.logged("lease_lost"))
        stack.check_once([subject])
    finally:
        os.kill(stack.pool, signal.SIGCONT)
        paused.close()
        other.close()


def test_a_worker_that_nobody_rings_and_that_hears_nothing_works_all_the_same(stack: Stack):
    beat, pool = stack.tree.pids["beat"], stack.pool
    deaf = stack.worker("deaf", mutants="deaf_consumer", quick=",POOL_LOOK_SECONDS=0.5")
    for pid in (beat, pool):
        os.kill(pid, signal.SIGSTOP)
    try:
        deaf.wait_ready()
        subjects = stack.enqueue(count=3)
        stack.wait_completed(subjects)
        assert {stack.column(subject, "worker") for subject in subjects} == {"deaf"}
    finally:
        for pid in (beat, pool):
            if is_alive(pid):
                os.kill(pid, signal.SIGCONT)
        deaf.close()


def test_the_broker_restarted_under_them_costs_no_job(stack: Stack, tmp_path: Path):
    go = tmp_path / "go"
    running = stack.enqueue("wait for a file", str(go))
    stack.wait_running(running[0])

    killed = stack.tree.pids["broker"]
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: stack.tree.pids.get("broker") not in (None, killed))
    go.touch()
    stack.wait_completed(running)
    stack.tree.prompt("after the broker")

    stack.wait_completed(stack.enqueue(count=3))


def test_a_drain_of_the_tree_hands_running_jobs_back(stack: Stack, tmp_path: Path):
    """The last one: it ends the stack."""
    (subject,) = stack.enqueue("deaf", "", str(tmp_path / "notes"))
    child = noted_pid(tmp_path / "notes")

    stack.tree.process.terminate()
    assert stack.tree.process.wait(60) == 0

    assert stack.column(subject, "state") == "pending"
    assert (stack.column(subject, "failures"), stack.column(subject, "deaths")) == (0, 0)
    assert not is_alive(child)

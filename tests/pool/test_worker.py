"""A whole pool worker: real Celery over a real broker, against a small gate that can be looked into."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memory_core.config import Settings
from tests.pool.one_slot import noted_pid, only_ending
from tests.pool.real_worker import INSTALL, Bells, RealWorker
from tests.pool.small_gate import SmallGate, says
from tests.stack.conftest import BrokerStart, is_alive, settings, start_broker, wait_until
from workers import broker
from workers.celery_app import make_app

__all__ = ["settings", "start_broker"]
pytestmark = pytest.mark.stack

Start = Callable[..., RealWorker]


@pytest.fixture
def the_broker(settings: Settings, start_broker: BrokerStart) -> subprocess.Popen[bytes]:
    return start_broker(settings)


@pytest.fixture
def broker_url(settings: Settings, the_broker: subprocess.Popen[bytes]) -> str:
    return broker.broker_url(settings)


@pytest.fixture
def bells(broker_url: str) -> Iterator[Bells]:
    made = Bells(broker_url)
    yield made
    made.close()


@pytest.fixture
def start(broker_url: str, gate: SmallGate, tmp_path: Path) -> Iterator[Start]:
    started: list[RealWorker] = []

    def make(name: str = "worker", **more: Any) -> RealWorker:
        started.append(RealWorker(tmp_path / name, broker_url, gate.url, **more))
        return started[-1]

    yield make
    for worker in started:
        worker.close()


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    return tmp_path / "notes"


def test_a_bell_brings_the_next_job_and_flower_is_told_which_one(
    start: Start, gate: SmallGate, bells: Bells, broker_url: str
):
    start().wait_ready()
    jobs = [gate.add("probe", {"text": str(number)}) for number in range(3)]
    shown: list[str] = []

    def note(event: dict[str, Any]) -> None:
        shown.append(str(event.get("result")))
        receiver.should_stop = all(any(job.id in text for text in shown) for job in jobs)

    app = make_app(Settings(data_dir=Path("/nowhere"), broker_url=broker_url), INSTALL)
    with app.connection_for_read() as connection:
        receiver = app.events.Receiver(connection, handlers={"task-succeeded": note})
        threading.Timer(0.2, bells.ring).start()
        receiver.capture(limit=None, timeout=30, wakeup=False)
    app.close()

    assert [only_ending(job)[1]["output"] for job in jobs] == [{"text": str(number)} for number in range(3)]
    ours = [text for text in shown if jobs[0].id in text]
    assert "'kind': 'probe'" in ours[0]
    assert "'outcome': 'completed'" in ours[0]


def test_a_long_job_holds_up_neither_its_queue_s_bells_nor_the_other_queues(
    start: Start, gate: SmallGate, bells: Bells, tmp_path: Path
):
    start().wait_ready()
    go = tmp_path / "go"
    long = gate.add("probe", {"what": "wait for a file", "text": str(go)})
    later = gate.add("probe", {})
    other = gate.add("probe_forget", {}, queue="forget")
    bells.ring()
    gate.wait(lambda: long.state == "running")

    for _ in range(12):
        bells.ring()
    bells.ring("forget")
    gate.wait(lambda: other.endings)
    assert later.state == "pending"

    go.touch()
    gate.wait(lambda: later.endings)
    assert only_ending(long)[0] == "finish"


def test_slots_are_as_many_as_was_said(start: Start, gate: SmallGate, bells: Bells, tmp_path: Path):
    start(pool_slots=2, pool_queues=("lint",)).wait_ready()
    go = tmp_path / "go"
    jobs = [gate.add("probe", {"what": "wait for a file", "text": str(go)}) for _ in range(3)]

    bells.ring()
    gate.wait(lambda: [job.state for job in jobs] == ["running", "running", "pending"])

    go.touch()
    gate.wait(lambda: all(job.endings for job in jobs))


def test_a_worker_that_is_never_rung_works_all_the_same(start: Start, gate: SmallGate):
    start(environ={"POOL_QUICK": "POOL_LOOK_SECONDS=0.5"}).wait_ready()
    jobs = [gate.add("probe", {}) for _ in range(3)]

    gate.wait(lambda: all(job.endings for job in jobs))


def test_sigterm_hands_the_job_back_kills_the_child_and_ends_soon(
    start: Start, gate: SmallGate, bells: Bells, notes: Path
):
    worker = start().wait_ready()
    job = gate.add("probe", {"what": "deaf", "notes": str(notes)})
    bells.ring()
    pid = noted_pid(notes)

    worker.send(signal.SIGTERM)

    assert worker.process.wait(60) == 0
    assert only_ending(job) == ("release", {"reason": "stopping"})
    assert not is_alive(pid)


def test_sigterm_ends_it_also_when_nobody_takes_the_job_back(
    start: Start, gate: SmallGate, bells: Bells, notes: Path
):
    worker = start().wait_ready()
    gate.add("probe", {"what": "deaf", "notes": str(notes)})
    gate.fail_next("release", *[says(503)] * 100)
    bells.ring()
    pid = noted_pid(notes)

    worker.send(signal.SIGTERM)

    assert worker.process.wait(60) == 0
    wait_until(lambda: not is_alive(pid))


@pytest.mark.kills
def test_no_child_outlives_a_killed_worker(start: Start, gate: SmallGate, bells: Bells, notes: Path):
    worker = start().wait_ready()
    gate.add("probe", {"what": "deaf", "notes": str(notes)})
    bells.ring()
    pid = noted_pid(notes)
    assert worker.children() == {pid}

    worker.send(signal.SIGKILL)

    wait_until(lambda: not is_alive(pid))


def test_a_worker_paused_past_its_lease_forgets_the_result_and_goes_on(
    start: Start, gate: SmallGate, bells: Bells, tmp_path: Path
):
    worker = start().wait_ready()
    go = tmp_path / "go"
    job = gate.add("probe", {"what": "wait for a file", "text": str(go)})
    bells.ring()
    gate.wait(lambda: job.state == "running")

    worker.send(signal.SIGSTOP)
    job.lease = "somebody else's"  # the lease was over, and another worker has the job
    go.touch()
    after = gate.add("probe", {})
    worker.send(signal.SIGCONT)
    bells.ring()
    gate.wait(lambda: after.endings)

    assert job.endings == []
    assert worker.logged("lease_lost")


@pytest.mark.kills
def test_bells_are_heard_again_after_the_broker_was_killed_while_a_job_ran(
    start: Start,
    gate: SmallGate,
    bells: Bells,
    settings: Settings,
    the_broker: subprocess.Popen[bytes],
    start_broker: BrokerStart,
    tmp_path: Path,
):
    worker = start(pool_queues=("lint",)).wait_ready()
    go = tmp_path / "go"
    running = gate.add("probe", {"what": "wait for a file", "text": str(go)})
    bells.ring()
    gate.wait(lambda: running.state == "running")

    the_broker.kill()
    the_broker.wait()
    go.touch()
    gate.wait(lambda: running.endings)
    start_broker(settings)
    after = gate.add("probe", {})

    def rung() -> bool:
        try:
            bells.ring()
        except OSError:
            pass
        return bool(after.endings)

    wait_until(rung)
    assert only_ending(running)[0] == "finish"
    assert worker.process.poll() is None


@pytest.mark.kills
def test_a_worker_that_hears_nothing_ends_when_its_job_is_done_and_not_before(
    start: Start, gate: SmallGate, bells: Bells, tmp_path: Path
):
    quick = {"POOL_QUICK": "POOL_LOOK_SECONDS=0.5,POOL_PULSE_SECONDS=0.2"}
    worker = start(mutants="deaf_consumer,short_patience", environ=quick).wait_ready()
    go = tmp_path / "go"
    running = gate.add("probe", {"what": "wait for a file", "text": str(go)})
    gate.wait(lambda: running.state == "running")

    bells.ring("embeddings")
    wait_until(lambda: worker.logged("consumer_hangs"))
    after = gate.add("probe", {})
    wait_until(lambda: worker.silent_seconds() < 1.0)
    assert worker.process.poll() is None
    go.touch()

    assert worker.process.wait(60) == 0
    assert only_ending(running)[0] == "finish"
    assert after.state == "pending"


def test_a_worker_with_a_long_job_shows_that_it_lives(
    start: Start, gate: SmallGate, bells: Bells, tmp_path: Path
):
    quick = {"POOL_QUICK": "POOL_LOOK_SECONDS=600,POOL_PULSE_SECONDS=0.2,POOL_OVERTIME_SECONDS=0"}
    worker = start(environ=quick).wait_ready()
    go = tmp_path / "go"
    job = gate.add("probe", {"what": "wait for a file", "text": str(go)}, run_seconds=60.0)
    bells.ring()
    gate.wait(lambda: job.state == "running")
    seen = worker.beat()

    wait_until(lambda: worker.beat() != seen)

    go.touch()
    gate.wait(lambda: job.endings)


def test_a_slot_that_hangs_silences_the_worker(start: Start, gate: SmallGate, bells: Bells, tmp_path: Path):
    quick = {"POOL_QUICK": "POOL_LOOK_SECONDS=600,POOL_PULSE_SECONDS=0.2,POOL_OVERTIME_SECONDS=0.2"}
    worker = start(environ=quick).wait_ready()
    go = tmp_path / "go"
    # In the worker's own thread nobody can kill it.
    gate.add("probe_inline", {"what": "wait for a file", "text": str(go)}, is_inline=True, run_seconds=0.5)
    bells.ring()

    wait_until(lambda: worker.logged("slot_hangs"))
    silent = worker.beat()
    wait_until(lambda: worker.silent_seconds() > 1.0)

    assert worker.beat() == silent
    go.touch()


def test_a_worker_without_a_token_or_with_a_wrong_queue_says_so_and_ends(
    start: Start, capfd: pytest.CaptureFixture[str]
):
    wrong = start("wrong", pool_queues=("lint", "lunch"))
    assert wrong.process.wait(60) == 78
    assert "there is no queue 'lunch'" in capfd.readouterr().err

    without = start("without", install="", pool_token_file="/nowhere/token")
    assert without.process.wait(60) == 69
    assert "memoryd tokens create --scope pool" in capfd.readouterr().err


def test_a_remote_worker_learns_the_install_from_the_gate(start: Start, gate: SmallGate, bells: Bells):
    start(install="").wait_ready()
    job = gate.add("probe", {})

    bells.ring()

    gate.wait(lambda: job.endings)


def test_the_lease_is_on_the_broker_and_in_the_logs_nowhere(
    start: Start, gate: SmallGate, bells: Bells, broker_url: str, notes: Path, settings: Settings
):
    worker = start(log_level="DEBUG").wait_ready()
    job = gate.add("probe", {"what": "deaf", "notes": str(notes)})
    bells.ring()
    noted_pid(notes)
    lease = job.lease
    assert len(lease) == 43

    worker.send(signal.SIGTERM)
    assert worker.process.wait(60) == 0

    kept = [path.read_bytes() for path in settings.broker_dir.rglob("*") if path.is_file()]
    kept += [path.read_bytes() for path in worker.settings.log_dir.iterdir()]
    assert len(kept) > 3
    assert not [1 for data in kept if lease.encode() in data]

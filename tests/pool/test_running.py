"""One job in one slot, with real compute children: however it ends, the gate hears of it once and nobody is left behind."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from memory_core import limits
from memory_core.clock import FakeClock
from tests.pool.one_slot import NURSERY, Slot, in_background, noted_pid, only_ending
from tests.pool.small_gate import SmallGate, cut_after, says
from tests.stack.conftest import is_alive, wait_until
from workers.pool.killable import ComputeChild
from workers.pool.running import Pace

pytestmark = pytest.mark.usefixtures("probe_kinds")


# --- what ends well ---


def test_a_job_is_computed_in_the_child_and_finished_with_the_digest_of_its_input(
    gate: SmallGate, slot: Slot
):
    job = gate.add("probe", {"text": "héllo"})

    report = slot.work()

    route, body = only_ending(job)
    assert (route, body["output"], report.outcome) == ("finish", {"text": "héllo"}, "completed")
    assert len(body["input_digest"]) == 64
    assert report.shown() == {"job": job.id, "kind": "probe", "outcome": "completed"}


def test_one_child_serves_one_job_after_another_and_goes_when_it_has_no_work(gate: SmallGate, own_slot: Slot):
    for _ in range(3):
        gate.add("probe", {})
    own_slot.work()
    pid = own_slot.child.pid
    assert pid is not None

    own_slot.work()
    own_slot.child.rest(60.0)
    own_slot.work()
    assert own_slot.child.pid == pid

    own_slot.child.rest(0.0)
    assert own_slot.child.pid is None
    wait_until(lambda: not is_alive(pid))


def test_looks_that_find_no_job_do_not_keep_an_idle_child(gate: SmallGate, own_slot: Slot):
    clock = FakeClock()
    own_slot.child = ComputeChild(NURSERY.spawn, clock)
    gate.add("probe", {})
    own_slot.work()

    for _ in range(12):
        clock.advance(5.0)
        own_slot.child.lay_down()
    own_slot.child.rest(61.0)
    assert own_slot.child.pid is not None
    own_slot.child.rest(60.0)

    assert own_slot.child.pid is None


def test_a_child_that_dies_while_it_lies_idle_costs_the_next_job_nothing(
    gate: SmallGate, own_slot: Slot, monkeypatch: pytest.MonkeyPatch
):
    own_slot.warm(gate)
    dying, give = own_slot.child.pid, own_slot.child.begin
    assert dying is not None
    given = threading.Event()

    def begin(work: Any, hear: Any) -> None:
        give(work, hear)
        given.set()

    monkeypatch.setattr(own_slot.child, "begin", begin)
    # Alive when the work is given to it, and dead before it read it.
    os.kill(dying, signal.SIGSTOP)
    job = gate.add("probe", {"text": "all the same"})
    thread, _ = in_background(own_slot.work)
    assert given.wait(60)
    os.kill(dying, signal.SIGKILL)
    thread.join(60)

    assert only_ending(job)[1]["output"] == {"text": "all the same"}
    assert job.claims == 1
    assert own_slot.child.pid != dying


def test_an_idle_child_that_is_dead_already_is_replaced_unnoticed(gate: SmallGate, own_slot: Slot):
    own_slot.warm(gate)
    dead = own_slot.child.pid
    assert dead is not None
    os.kill(dead, signal.SIGKILL)
    job = gate.add("probe", {"text": "anew"})

    own_slot.work()

    assert only_ending(job)[1]["output"] == {"text": "anew"}


def test_children_that_do_not_even_begin_are_counted_to_the_job_from_the_second_on(
    gate: SmallGate, own_slot: Slot
):
    spawned: list[int] = []

    def spawn(argv: Any) -> Any:
        process = NURSERY.spawn(argv)
        spawned.append(process.pid)
        return process

    own_slot.child = ComputeChild(spawn, own_slot.clock, argv=("/bin/false",))
    job = gate.add("probe", {})

    own_slot.work()

    assert only_ending(job) == ("fail", {"error": "child_died", "permanent": False})
    assert len(spawned) == 2


def test_an_inline_kind_needs_no_child(gate: SmallGate, own_slot: Slot):
    job = gate.add("probe_inline", {"text": "here"}, is_inline=True)

    own_slot.work()

    assert only_ending(job)[1]["output"] == {"text": "here"}
    assert own_slot.child.pid is None


def test_a_large_input_and_what_a_kind_prints_go_through(gate: SmallGate, slot: Slot):
    text = "x" * (4 * 1024 * 1024)
    large, loud = gate.add("probe", {"text": text}), gate.add("probe", {"what": "shout", "text": "y"})

    slot.work()
    slot.work()

    assert only_ending(large)[1]["output"] == {"text": text}
    assert only_ending(loud)[1]["output"] == {"text": "y"}


# --- what goes wrong with a kind ---


@pytest.mark.parametrize("kind", ["probe", "probe_inline"])
def test_an_error_is_a_counted_failure_whose_text_goes_nowhere(
    gate: SmallGate, slot: Slot, kind: str, caplog: pytest.LogCaptureFixture
):
    job = gate.add(kind, {"what": "raise", "text": "quoted by the error"}, is_inline=kind == "probe_inline")

    slot.work()

    assert only_ending(job) == ("fail", {"error": "crashed", "permanent": False})
    (record,) = [r for r in caplog.records if getattr(r, "action", "") == "compute_failed"]
    assert record.exception["type"] == "builtins.ValueError"
    assert any("job_kinds.py" in frame for frame in record.exception["stack"])
    assert "quoted by the error" not in caplog.text + str(gate.asked[1:])


@pytest.mark.parametrize(
    ("given", "error"),
    [({"text": "another type"}, "output"), ({"text": 3}, "input")],
)
def test_a_wrong_output_and_an_input_that_does_not_fit_have_their_own_names(
    gate: SmallGate, slot: Slot, given: dict[str, Any], error: str
):
    job = gate.add("probe", given)

    slot.work()

    assert only_ending(job) == ("fail", {"error": error, "permanent": False})


def test_a_kind_that_this_version_does_not_know_fails_by_name(gate: SmallGate, slot: Slot):
    job = gate.add("nobody_knows", {})

    slot.work()

    assert only_ending(job) == ("fail", {"error": "unknown_kind", "permanent": False})


@pytest.mark.parametrize("what", ["exit", "die"])
def test_a_child_that_dies_fails_its_job_and_the_next_job_gets_another(
    gate: SmallGate, slot: Slot, what: str
):
    job, after = gate.add("probe", {"what": what}), gate.add("probe", {})

    slot.work()
    slot.work()

    assert only_ending(job) == ("fail", {"error": "child_died", "permanent": False})
    assert only_ending(after)[0] == "finish"


def test_a_child_that_died_while_it_had_nothing_to_do_costs_no_job(gate: SmallGate, slot: Slot):
    first, second = gate.add("probe", {}), gate.add("probe", {})
    slot.work()
    pid = slot.child.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    # Not before all its threads are gone can a parent know.
    life = slot.child._life
    assert life is not None
    wait_until(life.has_ended)

    slot.work()

    assert (only_ending(first)[0], only_ending(second)[0]) == ("finish", "finish")


def test_a_child_that_sleeps_for_ever_and_ignores_sigterm_is_killed_at_the_run_cap(
    gate: SmallGate, slot: Slot, notes: Path
):
    slot.warm(gate)
    job = gate.add("probe", {"what": "deaf", "notes": str(notes)}, run_seconds=1.0)

    slot.work()

    assert only_ending(job) == ("fail", {"error": "timed_out", "permanent": False})
    wait_until(lambda: not is_alive(noted_pid(notes)))


def test_a_stopped_child_that_reads_nothing_is_killed_at_the_run_cap(
    gate: SmallGate, slot: Slot, notes: Path
):
    slot.warm(gate)
    assert slot.child.pid is not None
    os.kill(slot.child.pid, signal.SIGSTOP)
    job = gate.add("probe", {"text": "x" * (2 * 1024 * 1024)}, run_seconds=0.5)

    slot.work()

    assert only_ending(job) == ("fail", {"error": "timed_out", "permanent": False})


def test_what_a_killed_kind_had_started_is_killed_with_it(gate: SmallGate, slot: Slot, notes: Path):
    slot.warm(gate)
    gate.add("probe", {"what": "litter", "text": "hang", "notes": str(notes)}, run_seconds=1.0)

    slot.work()

    pid = noted_pid(notes)
    wait_until(lambda: not is_alive(pid))


# --- telling the gate ---


@pytest.mark.parametrize("fault", [cut_after, says(503), says(202), says(504)])
def test_the_end_of_a_job_is_told_again_until_it_is_heard_and_counts_once(
    gate: SmallGate, slot: Slot, fault: Any
):
    job = gate.add("probe", {})
    gate.fail_next("finish", fault, fault)

    assert slot.work().outcome == "completed"

    assert only_ending(job)[0] == "finish"
    assert len({key for route, _, key in gate.asked if route == "finish"}) == 1


@pytest.mark.parametrize(("status", "error"), [(400, "output"), (413, "output"), (409, "refused")])
def test_an_output_that_the_gate_does_not_take_is_a_failure(
    gate: SmallGate, slot: Slot, status: int, error: str
):
    job = gate.add("probe", {})
    gate.fail_next("finish", says(status))

    slot.work()

    assert only_ending(job) == ("fail", {"error": error, "permanent": False})


def test_a_gate_that_stays_away_costs_the_job_and_not_the_slot(gate: SmallGate, slot: Slot):
    gate.add("probe", {})
    gate.fail_next("finish", *[says(503)] * 1000)

    report = slot.work(Pace(renew_seconds=60.0, finish_seconds=0.5))

    assert report.outcome == "unreported"


def test_a_child_that_cannot_be_started_hands_the_job_back(gate: SmallGate, own_slot: Slot, monkeypatch):
    def no_more(_: Any) -> Any:
        raise OSError(11, "Resource temporarily unavailable")

    own_slot.child = ComputeChild(no_more, own_slot.clock)
    job = gate.add("probe", {})

    own_slot.work()

    assert only_ending(job) == ("release", {"reason": "contended"})


def test_a_slot_says_by_when_it_must_have_got_somewhere(gate: SmallGate, slot: Slot):
    gate.add("probe", {}, run_seconds=100.0)
    now = slot.clock.monotonic()

    run = slot.take()
    assert run.busy_until >= now + 100.0

    run.work()
    assert run.busy_until <= slot.clock.monotonic() + 5.0 + limits.POOL_OVERTIME_SECONDS

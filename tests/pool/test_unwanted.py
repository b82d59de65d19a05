"""A job that nobody wants any more: cancelled, handed back by a worker that ends, or lost to another claim."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.pool.one_slot import QUICK, Slot, in_background, noted_pid, only_ending
from tests.pool.small_gate import SmallGate, cut_after, says
from tests.stack.conftest import is_alive, wait_until

pytestmark = pytest.mark.usefixtures("probe_kinds")


def test_a_kind_that_obeys_a_cancel_ends_by_itself_and_its_half_result_is_not_sent(
    gate: SmallGate, slot: Slot, notes: Path
):
    job = gate.add("probe", {"what": "obey", "notes": str(notes)})
    _, answers = in_background(lambda: slot.work(replace(QUICK, cancel_seconds=20.0)))
    noted_pid(notes)

    gate.cancel = True
    wait_until(lambda: answers)

    assert only_ending(job) == ("release", {"reason": "cancelled"})
    assert notes.read_text().endswith("obeyed\n")
    assert answers[0].outcome == "released"


def test_a_kind_that_does_not_obey_a_cancel_is_killed(gate: SmallGate, slot: Slot, notes: Path):
    job = gate.add("probe", {"what": "deaf", "notes": str(notes)})
    _, answers = in_background(lambda: slot.work(QUICK))
    pid = noted_pid(notes)

    gate.cancel = True
    gate.wait(lambda: job.endings)

    assert only_ending(job) == ("release", {"reason": "cancelled"})
    wait_until(lambda: answers and not is_alive(pid))


def test_a_cancel_reaches_an_inline_kind(gate: SmallGate, slot: Slot):
    job = gate.add("probe_inline", {"what": "obey"}, is_inline=True)
    gate.cancel = True

    slot.work(QUICK)

    assert only_ending(job) == ("release", {"reason": "cancelled"})


def test_a_job_lives_by_its_renewals_and_one_that_does_not_get_through_is_sent_again_soon(
    gate: SmallGate, slot: Slot, notes: Path, tmp_path: Path
):
    go = tmp_path / "go"
    job = gate.add("probe", {"what": "wait for a file", "text": str(go)})
    gate.fail_next("renew", says(503), cut_after)
    _, answers = in_background(lambda: slot.work(QUICK))

    gate.wait(lambda: job.renewals >= 3)
    go.touch()
    gate.wait(lambda: job.endings)

    assert only_ending(job)[0] == "finish"
    wait_until(lambda: answers)


def test_a_lost_lease_ends_the_computation_and_the_result_is_forgotten(
    gate: SmallGate, slot: Slot, notes: Path
):
    job = gate.add("probe", {"what": "deaf", "notes": str(notes)})
    _, answers = in_background(lambda: slot.work(QUICK))
    pid = noted_pid(notes)

    job.lease = "somebody else's"
    wait_until(lambda: answers)

    assert answers[0].outcome == "lost"
    assert job.endings == []
    wait_until(lambda: not is_alive(pid))


def test_an_inline_kind_whose_lease_is_lost_is_told_to_stop_and_nothing_is_sent(gate: SmallGate, slot: Slot):
    job = gate.add("probe_inline", {"what": "obey"}, is_inline=True)
    run = slot.take(QUICK)
    job.lease = "somebody else's"

    assert run.work().outcome == "lost"
    assert {route for route, _, _ in gate.asked} == {"claim", "renew"}


def test_a_job_that_is_over_is_not_renewed_any_more(gate: SmallGate, slot: Slot):
    job = gate.add("probe", {})

    slot.work()

    wait_until(lambda: f"renew-{job.id}" not in {thread.name for thread in threading.enumerate()})


def test_a_result_that_comes_after_its_lease_was_lost_is_forgotten(gate: SmallGate, slot: Slot):
    job = gate.add("probe", {})
    run = slot.take()
    job.lease = "somebody else's"

    assert run.work().outcome == "lost"
    assert job.endings == []


def test_a_stopping_worker_hands_its_job_back_uncounted_and_kills_the_child(
    gate: SmallGate, slot: Slot, notes: Path
):
    job = gate.add("probe", {"what": "deaf", "notes": str(notes)})
    run = slot.take()
    _, answers = in_background(run.work)
    pid = noted_pid(notes)

    run.stop()
    wait_until(lambda: answers)

    assert only_ending(job) == ("release", {"reason": "stopping"})
    wait_until(lambda: not is_alive(pid))


def test_the_lease_is_in_no_log_repr_or_message_to_the_child(
    gate: SmallGate, slot: Slot, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    from workers.pool import frames

    sent: list[bytes] = []
    send = frames.send

    def spy(stream: Any, message: Any) -> None:
        sent.append(repr(message).encode())
        send(stream, message)

    monkeypatch.setattr(frames, "send", spy)
    job = gate.add("probe", {"what": "raise"})
    run = slot.take()
    lease = job.lease
    assert len(lease) == 43

    report = run.work()

    assert sent
    shown = [repr(run), repr(report), str(report.shown()), caplog.text, str(vars(report)), *map(str, sent)]
    assert not [text for text in shown if lease in text]
    assert [r for r in caplog.records if lease in str(vars(r))] == []

"""The slots of a queue: a look never waits for one, and no look that came while all were busy is forgotten."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_core import limits
from memory_core.clock import FakeClock, SystemClock
from memory_core.errors import CoreError, Forbidden, StaleLease, Unavailable
from tests.stack.conftest import wait_until
from workers.pool.claiming import Claim, ClaimedJob
from workers.pool.running import Report
from workers.pool.slots import Slots


class NoChild:
    def __init__(self) -> None:
        self.rested: list[float] = []
        self.kills = 0

    def lay_down(self) -> None: ...

    def rest(self, idle_seconds: float) -> None:
        self.rested.append(idle_seconds)

    def kill(self) -> None:
        self.kills += 1


class Bench:
    """Slots over a list of jobs; a job runs until the test lets it go on."""

    def __init__(self, jobs: int = 0, *, slots: int = 1, clock: Any = None, ring_works: bool = True) -> None:
        self.waiting = jobs
        self.refusal: CoreError | None = None
        self.done = 0
        self.running = 0
        self.most = 0
        self.claims = 0
        self.rings = 0
        self.rings_now = 0
        self.ring_works = ring_works
        self.stops = 0
        self.lock = threading.Lock()
        self.go = threading.Semaphore(0)
        self.closing = threading.Event()
        self.children = [NoChild() for _ in range(slots)]
        self.during: Callable[[], None] = lambda: None
        self.slots = Slots(
            "lint",
            self.children,  # type: ignore[arg-type]
            claim_next=self._claim,
            make_run=lambda *_: _Run(self),  # type: ignore[arg-type,return-value]
            ring=self._ring,
            ring_now=self._ring_now,
            closing=self.closing,
            clock=clock or SystemClock(),
        )

    def _claim(self) -> tuple[Claim, str]:
        with self.lock:
            self.claims += 1
            if self.refusal is not None:
                raise self.refusal
            if not self.waiting:
                return Claim(job=None), "lease"
            self.waiting -= 1
            job = ClaimedJob(id="1", kind="probe", queue="lint", attempt=1, run_seconds=1.0)
            return Claim(job=job, more=self.waiting > 0), "lease"

    def _ring(self) -> None:
        self.rings += 1

    def _ring_now(self) -> bool:
        self.rings_now += 1
        return self.ring_works

    def in_background(self, count: int = 1) -> tuple[list[threading.Thread], list[Report]]:
        reports: list[Report] = []
        threads = [
            threading.Thread(target=lambda: reports.append(self.slots.look()), daemon=True)
            for _ in range(count)
        ]
        for thread in threads:
            thread.start()
        return threads, reports


class _Run:
    busy_until = float("inf")

    def __init__(self, bench: Bench) -> None:
        self.bench = bench

    def work(self) -> Report:
        with self.bench.lock:
            self.bench.running += 1
            self.bench.most = max(self.bench.most, self.bench.running)
        self.bench.during()
        assert self.bench.go.acquire(timeout=60)
        with self.bench.lock:
            self.bench.running -= 1
            self.bench.done += 1
        return Report(outcome="completed", job="1", kind="probe", more=self.bench.waiting > 0)

    def stop(self) -> None:
        self.bench.stops += 1
        self.bench.go.release()


def test_an_empty_queue_is_left_in_peace():
    bench = Bench()

    assert bench.slots.look().outcome == "nothing"

    assert (bench.claims, bench.rings, bench.rings_now) == (1, 0, 0)


def test_a_look_at_a_busy_queue_returns_at_once_and_is_followed_up():
    bench = Bench(jobs=1)
    (thread,), reports = bench.in_background()
    wait_until(lambda: bench.running == 1)

    assert [bench.slots.look().outcome for _ in range(5)] == ["busy"] * 5
    bench.go.release()
    thread.join()

    assert reports[0].outcome == "completed"
    # Rung once for the five, so that a job that came meanwhile is found.
    assert bench.rings_now == 1


def test_more_is_told_to_others_before_the_computation():
    bench = Bench(jobs=2)
    seen: list[int] = []
    bench.during = lambda: seen.append(bench.rings)
    bench.go.release()

    bench.slots.look()

    assert seen == [1]
    assert bench.rings_now == 1


def test_where_nobody_can_be_rung_the_slot_goes_on_until_nothing_is_left():
    bench = Bench(jobs=5, ring_works=False)
    for _ in range(5):
        bench.go.release()

    report = bench.slots.look()

    assert (bench.done, bench.most) == (5, 1)
    assert report.outcome == "completed"


def test_as_many_jobs_run_at_once_as_there_are_slots():
    bench = Bench(jobs=3, slots=2)
    threads, reports = bench.in_background(3)
    wait_until(lambda: bench.running == 2 and len(reports) == 1)

    assert reports[0].outcome == "busy"
    assert bench.waiting == 1
    for _ in range(2):
        bench.go.release()
    for thread in threads:
        thread.join()
    assert bench.most == 2


@given(looks=st.integers(1, 12), slots=st.integers(1, 3), late=st.integers(0, 6))
@settings(max_examples=25, deadline=None)
def test_whatever_comes_together_no_job_is_left_while_bells_do_not_work(looks: int, slots: int, late: int):
    bench = Bench(jobs=looks, slots=slots, ring_works=False)
    for _ in range(looks + late):
        bench.go.release()
    threads, _ = bench.in_background(looks)
    # Jobs that come while others run, each announced by one look.
    more = []
    for _ in range(late):
        with bench.lock:
            bench.waiting += 1
        more += bench.in_background()[0]
    for thread in (*threads, *more):
        thread.join()

    assert bench.waiting == 0
    assert bench.done == looks + late
    assert bench.most <= slots


@pytest.mark.parametrize("error", [Unavailable(), StaleLease()])
def test_a_gate_that_is_away_is_asked_again_at_the_next_look_and_not_before(error: CoreError):
    bench = Bench(jobs=1, ring_works=False)
    bench.refusal = error

    assert bench.slots.look().outcome == "gate away"
    assert bench.claims == 1

    bench.refusal = None
    bench.go.release()
    assert bench.slots.look().outcome == "completed"


def test_a_token_that_is_not_accepted_is_said_once_until_it_is(caplog: pytest.LogCaptureFixture):
    bench = Bench()

    def said() -> int:
        return sum(getattr(record, "action", "") == "pool_forbidden" for record in caplog.records)

    bench.refusal = Forbidden()
    for _ in range(3):
        bench.slots.look()
    assert said() == 1

    bench.refusal = None
    bench.slots.look()
    bench.refusal = Forbidden()
    bench.slots.look()
    assert said() == 2


def test_a_closing_worker_begins_nothing_and_hands_back_what_runs():
    bench = Bench(jobs=2)
    (thread,), _ = bench.in_background()
    wait_until(lambda: bench.running == 1)

    bench.closing.set()
    assert bench.slots.look().outcome == "stopping"
    bench.slots.stop()
    assert bench.slots.wait_idle(10)
    thread.join()

    assert bench.stops == 1
    assert bench.waiting == 1
    bench.slots.kill_children()
    assert bench.children[0].kills == 1


def test_a_closing_worker_with_a_free_slot_asks_for_nothing():
    bench = Bench(jobs=1)
    bench.closing.set()

    assert bench.slots.look().outcome == "stopping"
    assert bench.claims == 0


def test_a_job_that_was_claimed_while_the_worker_closed_is_handed_back():
    bench = Bench(jobs=1)
    claim_next = bench._claim

    def closing_meanwhile() -> tuple[Claim, str]:
        bench.closing.set()
        return claim_next()

    bench.slots._claim_next = closing_meanwhile

    bench.slots.look()

    assert bench.stops == 1


def test_a_queue_that_nobody_rings_is_looked_at_after_a_while():
    clock = FakeClock()
    bench = Bench(clock=clock)

    bench.slots.look_if_idle(15.0)
    assert bench.claims == 0
    clock.advance(15.0)
    bench.slots.look_if_idle(15.0)
    bench.slots.look_if_idle(15.0)

    assert bench.claims == 1


def test_a_slot_is_overdue_only_when_its_job_is_past_all_its_times():
    clock = FakeClock()
    bench = Bench(jobs=1, clock=clock)
    bench.during = lambda: None
    (thread,), _ = bench.in_background()
    wait_until(lambda: bench.running == 1)
    (slot,) = bench.slots._busy
    assert slot.run is not None
    slot.run.busy_until = clock.monotonic() + 900.0

    clock.advance(899.0)
    assert bench.slots.is_busy
    assert not bench.slots.is_overdue
    clock.advance(2.0)
    assert bench.slots.is_overdue

    bench.go.release()
    thread.join()
    assert not bench.slots.is_overdue


def test_a_claim_that_is_never_answered_makes_its_slot_overdue():
    clock = FakeClock()
    bench = Bench(jobs=1, clock=clock)
    hold = threading.Event()
    claim_next = bench._claim

    def stuck() -> tuple[Claim, str]:
        assert hold.wait(60)
        return claim_next()

    bench.slots._claim_next = stuck
    (thread,), _ = bench.in_background()
    wait_until(lambda: bench.slots.is_busy)

    clock.advance(limits.POOL_CLAIM_SECONDS + limits.POOL_OVERTIME_SECONDS + 1)
    assert bench.slots.is_overdue

    hold.set()
    bench.go.release()
    thread.join()
    bench.slots.rest(7.0)
    assert bench.children[0].rested == [7.0]

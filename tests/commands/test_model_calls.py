"""Calls of models under a budget: reserved, settled, lost, refused; on a real database with a clock that the test moves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memory_core import limits
from memory_core.clock import rfc3339
from memory_core.commands.job_control import CancelJob
from memory_core.commands.jobs import expire_leases
from memory_core.domain.budget import Allowance, Budget, Cap, Price, Spent
from memory_core.domain.job import Reason
from memory_core.ids import id_text
from memory_core.store import model_budget, model_usage
from tests.factories import Store, database, event
from tests.jobs.calling import Caller, allow, spent_today, stopped, sweep_lost, usage, working
from tests.jobs.working import add_project, kind, look, registered

PRICE = Price(input=2_000_000, output=8_000_000, cached=500_000)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = database(tmp_path)
    with registered(kind(uses_model=True)):
        yield store
    store.close()


# --- one call ---


def test_a_call_is_reserved_then_settled_and_summed_up_by_day(store: Store):
    allow(store, Budget(prices={"openai:gpt-x": PRICE}))
    worker = working(store)

    answer = worker.reserve(100, prompt="consolidate.v3")
    assert (answer["granted"], answer["cancel"]) == (True, False)
    assert spent_today(store) == Spent(calls=1, tokens=100, money=75 * 2 + 25 * 8)
    assert worker.settle(answer["call"], (50, 10), cached_tokens=20) == {"cancel": False}

    assert spent_today(store) == Spent(calls=1, tokens=60, money=30 * 2 + 10 + 10 * 8)
    (row,) = store.all("SELECT * FROM model_calls")
    assert (row["prompt"], row["outcome"], row["kind"]) == ("consolidate.v3", "ok", "test_sum")
    (day,) = usage(store)
    assert {name: day[name] for name in ("calls", "failed", "lost", "unpriced", "cached_tokens")} == {
        "calls": 1,
        "failed": 0,
        "lost": 0,
        "unpriced": 0,
        "cached_tokens": 20,
    }


def test_asking_twice_reserves_once_and_settling_twice_counts_once(store: Store):
    worker = working(store)

    call = worker.reserve(100)["call"]
    assert worker.reserve(100, call=call)["granted"] is True
    assert spent_today(store).calls == 1
    worker.settle(call, (50, 10))
    assert worker.settle(call, (99, 99)) == {"cancel": False}

    assert spent_today(store) == Spent(calls=1, tokens=60)


@pytest.mark.parametrize(
    "other",
    [
        {"provider": "other"},
        {"model": "gpt-y"},
        {"input_tokens": 76},
        {"output_tokens_max": 26},
        {"prompt": "consolidate.v4"},
    ],
)
def test_a_known_id_with_another_call_grants_nothing(store: Store, other: dict[str, Any]):
    worker = working(store)
    call = worker.reserve(100)["call"]

    assert worker.reserve(100, call=call, **other).code == "conflict"
    assert worker.reserve(100, call=call)["granted"] is True
    assert spent_today(store) == Spent(calls=1, tokens=100)


def test_an_id_that_was_used_grants_nothing(store: Store):
    worker, other = working(store), working(store, "b")
    call = worker.reserve(100)["call"]
    assert other.reserve(100, call=call).code == "conflict"
    worker.settle(call)

    assert worker.reserve(100, call=call).code == "conflict"


def test_only_the_lease_of_the_job_may_reserve_and_only_that_of_the_call_may_settle(store: Store):
    worker = working(store)
    call = worker.reserve()["call"]
    stranger = Caller(store, job=worker.job, claim=b"\x01" * 32)

    assert stranger.reserve().code == "stale_lease"
    assert stranger.settle(call).code == "stale_lease"
    assert worker.settle(b"\x02" * 16).code == "stale_lease"


def test_a_failed_call_counts_what_is_known_of_it(store: Store):
    worker = working(store)

    worker.settle(worker.reserve(100)["call"], (30, 0), "model_overloaded")
    worker.settle(worker.reserve(100)["call"], (0, 0), "model_rate_limited")
    worker.settle(worker.reserve(100)["call"], (0, 0), "model_timed_out")

    (day,) = usage(store)
    assert (day["calls"], day["failed"], day["input_tokens"]) == (3, 3, 30 + 0 + 75)
    assert day["unpriced"] == 3


def test_a_cancelled_job_is_granted_nothing_and_hears_of_it(store: Store):
    worker = working(store)
    call = worker.reserve()["call"]
    store.apply(CancelJob(job=id_text(worker.job)))

    answer = worker.reserve()
    assert (answer["granted"], answer["cancel"]) == (False, True)
    assert worker.settle(call) == {"cancel": True}


# --- what nobody settles ---


def test_a_dead_worker_s_call_counts_in_full_until_its_claim_ends_and_after(store: Store):
    allow(store, Budget(day=Cap(tokens=250), prices={"openai:gpt-x": PRICE}))
    worker = working(store)
    call = worker.reserve(100)["call"]

    assert sweep_lost(store) == 0
    assert spent_today(store).tokens == 100
    store.clock.advance(limits.JOB_LEASE_SECONDS + 1)
    with store.transaction() as tx:
        expire_leases(tx)
    assert sweep_lost(store) == 1

    assert spent_today(store) == Spent(calls=1, tokens=100, money=75 * 2 + 25 * 8)
    assert store.all("SELECT outcome FROM model_calls") == [{"outcome": "lost"}]
    assert usage(store)[0]["lost"] == 1
    # It comes back after all: what it knows is better than what was assumed.
    assert worker.settle(call, (10, 5)) == {"cancel": True}
    assert spent_today(store) == Spent(calls=1, tokens=15, money=10 * 2 + 5 * 8)
    assert (usage(store)[0]["calls"], usage(store)[0]["lost"]) == (1, 0)


def test_a_call_that_its_job_left_open_is_settled_when_the_job_ends(store: Store):
    worker = working(store)
    worker.reserve(100)
    worker.finish()

    assert sweep_lost(store) == 1
    assert spent_today(store).tokens == 100


# --- the caps ---


def test_what_is_reserved_cannot_be_granted_to_another(store: Store):
    allow(store, Budget(day=Cap(tokens=150)))
    one, two = working(store), working(store, "b")

    call = one.reserve(100)["call"]
    answer = two.reserve(100)
    assert (answer["granted"], answer["reason"]) == (False, "reserved")
    one.settle(call, (30, 20))

    assert two.reserve(100)["granted"] is True


def test_what_is_only_reserved_stops_nobody_and_is_asked_again_soon(store: Store):
    allow(store, Budget(day=Cap(tokens=150)))
    one, two = working(store), working(store, "b")
    one.reserve(100)

    answer = two.reserve(100)

    soon = store.clock.now_us() + round(limits.JOB_CONTENDED_SECONDS * 1_000_000)
    assert (answer["reason"], answer["until"]) == ("reserved", rfc3339(soon))
    assert stopped(store) == []
    assert two.reserve(50)["granted"] is True


def test_a_call_that_no_cap_has_room_for_stops_nobody_else(store: Store):
    allow(store, Budget(day=Cap(tokens=150)))
    one, two = working(store), working(store, "b")

    answer = one.reserve(151)

    assert (answer["granted"], answer["reason"], answer["until"]) == (False, "too_large", None)
    assert stopped(store) == []
    assert two.reserve(150)["granted"] is True


def test_a_call_that_was_taken_for_lost_and_cost_less_lifts_the_stop_and_wakes_who_waits(store: Store):
    allow(store, Budget(day=Cap(tokens=150)))
    one, two = working(store), working(store, "b")
    call = one.reserve(100)["call"]
    one.release(Reason.STOPPING)
    assert sweep_lost(store) == 1
    assert two.reserve(100)["reason"] == "tokens_per_day"
    two.release(Reason.BUDGET)
    assert stopped(store) == ["tokens_per_day"]

    one.settle(call, (10, 5))

    assert stopped(store) == []
    allow(store, Budget(day=Cap(tokens=150)))
    (row,) = store.all("SELECT not_before FROM jobs WHERE id = ?", two.job)
    assert row["not_before"] is None


def test_a_used_up_day_is_over_with_the_day(store: Store):
    allow(store, Budget(day=Cap(tokens=100)))
    worker = working(store)
    worker.settle(worker.reserve(100)["call"], (75, 25))

    answer = worker.reserve(100)
    assert answer["until"] == "2026-05-29T00:00:00Z"
    assert stopped(store) == ["tokens_per_day"]
    store.clock.advance(3 * 3600 + 33 * 60 + 20)

    assert stopped(store) == []
    assert worker.reserve(100)["granted"] is True


def test_a_project_s_cap_stops_that_project_alone(store: Store):
    allow(store, Budget(project=Cap(tokens=100)))
    here, there = add_project(store, "here"), add_project(store, "there")
    one, two = working(store, "a", project_id=here), working(store, "b", project_id=there)
    one.settle(one.reserve(100)["call"], (75, 25))

    assert one.reserve(10)["reason"] == "project_tokens_per_day"
    assert two.reserve(100)["granted"] is True
    (found,) = model_budget.stops(look(store), store.clock.now_us())
    assert (found.scope, found.kind) == (here, "")


def test_a_kind_s_allowance_is_nothing_without_activity_and_grows_with_it(store: Store):
    from memory_core.commands.capture import RecordObservation
    from memory_core.domain.capture import capped

    allow(store, Budget(kinds={"test_sum": Allowance(calls_per_session=1, calls_per_100_observations=50)}))
    idle = add_project(store, "idle")
    quiet = working(store, "a", project_id=idle)
    assert quiet.reserve()["reason"] == "kind_calls"

    for number in range(4):
        store.apply(
            RecordObservation(event=capped(event(session_key="s", body=f"go {number}")), source="cursor/user")
        )
    (project,) = store.all("SELECT DISTINCT project_id FROM sessions")
    busy = working(store, "b", project_id=project["project_id"])

    # One session and four observations.
    granted = [busy.reserve()["granted"] for _ in range(4)]
    assert granted == [True, True, True, False]
    assert quiet.reserve()["reason"] == "kind_calls"


def test_the_allowance_looks_back_some_days_and_no_further(store: Store):
    from memory_core.commands.capture import RecordObservation
    from memory_core.domain.capture import capped

    allow(store, Budget(kinds={"test_sum": Allowance(calls_per_session=1)}))
    store.apply(RecordObservation(event=capped(event(session_key="s")), source="cursor/user"))
    (project,) = store.all("SELECT project_id FROM sessions")
    store.clock.advance((limits.BUDGET_ACTIVITY_DAYS - 1) * 86_400)
    worker = working(store, "a", project_id=project["project_id"])
    assert worker.reserve()["granted"] is True

    store.clock.advance(86_400)
    assert worker.reserve()["reason"] == "kind_calls"


def test_refusals_are_counted_by_kind_and_reason(store: Store):
    allow(store, Budget(day=Cap(tokens=0)))
    worker = working(store)
    worker.reserve()
    worker.reserve()

    assert [dict(row) for row in model_usage.refusals(look(store))] == [
        {"kind": "test_sum", "reason": "tokens_per_day", "count": 2}
    ]

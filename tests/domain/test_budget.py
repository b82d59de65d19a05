"""What is granted, and what never is: as values, without a database."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core import limits
from memory_core.clock import MICROSECONDS
from memory_core.domain import budget as rules
from memory_core.domain.budget import (
    Activity,
    Allowance,
    Budget,
    Cap,
    Granted,
    Price,
    Refused,
    Situation,
    Spent,
    Stop,
    Tokens,
    Wanted,
    decide,
)

#: 2026-05-28 20:26:40 UTC.
NOW = 1_780_000_000 * MICROSECONDS
MIDNIGHT = 1_780_012_800 * MICROSECONDS


def wanted(tokens: int = 100, **more: Any) -> Wanted:
    values: dict[str, Any] = {
        "kind": "consolidate",
        "project": "default/site",
        "provider": "openai",
        "model": "gpt-x",
        "tokens": Tokens(input=tokens // 2, output=tokens - tokens // 2),
    }
    return Wanted(**values | more)


def at(**more: Any) -> Situation:
    return Situation(now=NOW, **more)


def refused(asked: Wanted, budget: Budget, situation: Situation) -> Refused:
    found = decide(asked, budget, situation)
    assert isinstance(found, Refused)
    return found


def test_a_call_that_just_fits_is_granted_and_one_token_more_is_not():
    budget = Budget(day=Cap(tokens=1_000))

    assert isinstance(decide(wanted(100), budget, at(today=Spent(tokens=900))), Granted)
    found = refused(wanted(101), budget, at(today=Spent(tokens=900)))

    assert (found.reason, found.until) == (Stop.TOKENS, MIDNIGHT)
    assert "1,000, of which 900 are used or reserved" in found.sentence


def test_a_cap_of_nothing_grants_nothing_and_no_cap_grants_anything():
    assert refused(wanted(1), Budget(day=Cap(tokens=0)), at()).reason is Stop.TOKENS
    assert isinstance(
        decide(wanted(10**8), Budget(day=Cap(tokens=None)), at(today=Spent(tokens=10**12))), Granted
    )


def test_a_call_that_no_day_has_room_for_is_told_so():
    found = refused(wanted(101), Budget(day=Cap(tokens=100)), at())

    assert (found.reason, found.until) == (Stop.TOO_LARGE, None)
    assert "more than a whole day has" in found.sentence


def test_what_is_reserved_is_waited_for_and_what_is_used_ends_the_day():
    budget = Budget(day=Cap(tokens=1_000))

    def asked(used: int, reserved: int) -> Refused:
        now = at(today=Spent(tokens=used + reserved), today_open=Spent(tokens=reserved))
        return refused(wanted(100), budget, now)

    soon = NOW + round(limits.JOB_CONTENDED_SECONDS * MICROSECONDS)
    assert (asked(900, 1).reason, asked(900, 1).until) == (Stop.RESERVED, soon)
    assert (asked(901, 50).reason, asked(901, 50).until) == (Stop.TOKENS, MIDNIGHT)


def test_of_several_full_caps_the_one_that_lasts_longest_is_said():
    reserved = Spent(tokens=950)
    budget = Budget(day=Cap(tokens=1_000), project=Cap(tokens=500))

    found = refused(
        wanted(100), budget, at(today=reserved, today_open=reserved, project_today=Spent(tokens=450))
    )
    assert found.reason is Stop.PROJECT_TOKENS
    assert refused(wanted(501), budget, at(today=reserved)).reason is Stop.TOO_LARGE


def test_without_a_price_a_cap_of_money_grants_nothing_and_says_what_to_write():
    found = refused(wanted(), Budget(day=Cap(money=10**9)), at())

    assert (found.reason, found.until) == (Stop.UNPRICED, None)
    assert '[budget] price."openai:gpt-x"' in found.sentence


def test_without_a_cap_of_money_no_price_is_needed():
    assert decide(wanted(), Budget(), at()) == Granted(price=None, money=None)


def test_money_is_reserved_at_the_worst_price():
    price = Price(input=1_000_000, output=10_000_000, cached=2_000_000)
    budget = Budget(day=Cap(money=700), prices={"openai:gpt-x": price})

    # 50 tokens in at 2, 50 out at 10 micro-units each.
    assert decide(wanted(100), budget, at(today=Spent(money=100))) == Granted(price=price, money=600)
    assert refused(wanted(100), budget, at(today=Spent(money=101))).reason is Stop.MONEY


def test_a_price_for_all_of_a_provider_holds_where_the_model_has_none_of_its_own():
    budget = Budget(
        prices={
            "ollama:*": Price(input=0, output=0, cached=0),
            "ollama:big": Price(input=1, output=1, cached=1),
        }
    )

    assert budget.price("ollama", "small") == Price(input=0, output=0, cached=0)
    assert budget.price("ollama", "big") == Price(input=1, output=1, cached=1)
    assert budget.price("openai", "small") is None


def test_a_project_is_stopped_by_its_own_cap_and_the_install_by_none_of_a_project():
    budget = Budget(
        day=Cap(tokens=None), project=Cap(tokens=1_000), projects={"default/big": Cap(tokens=5_000)}
    )
    used = at(project_today=Spent(tokens=950))

    assert refused(wanted(100), budget, used).reason is Stop.PROJECT_TOKENS
    assert isinstance(decide(wanted(100, project="default/big"), budget, used), Granted)
    assert isinstance(decide(wanted(100, project=None), budget, used), Granted)


def test_a_project_with_a_cap_of_money_needs_a_price():
    budget = Budget(projects={"default/site": Cap(money=1)})

    assert refused(wanted(), budget, at()).reason is Stop.UNPRICED
    assert isinstance(decide(wanted(project="default/other"), budget, at()), Granted)


def test_a_kind_earns_its_calls_by_sessions_and_observations():
    allowance = Allowance(calls_per_session=2, calls_per_100_observations=1)
    budget = Budget(kinds={"consolidate": allowance})
    activity = Activity(sessions=3, observations=250)

    assert allowance.calls(activity) == 8
    assert isinstance(decide(wanted(), budget, at(kind=Spent(calls=7), activity=activity)), Granted)
    found = refused(wanted(), budget, at(kind=Spent(calls=8), activity=activity))
    assert (found.reason, found.until) == (Stop.KIND_CALLS, MIDNIGHT)
    assert isinstance(decide(wanted(kind="other"), budget, at(kind=Spent(calls=8))), Granted)


@pytest.mark.parametrize(
    ("allowance", "reason"),
    [
        (Allowance(calls_per_session=5), Stop.KIND_CALLS),
        (Allowance(calls_per_100_observations=5), Stop.KIND_CALLS),
        (Allowance(tokens_per_session=5_000), Stop.KIND_TOKENS),
        (Allowance(tokens_per_100_observations=5_000), Stop.KIND_TOKENS),
    ],
)
def test_without_activity_a_kind_with_an_allowance_gets_nothing(allowance: Allowance, reason: Stop):
    budget = Budget(kinds={"consolidate": allowance})

    assert refused(wanted(), budget, at()).reason is reason


def test_a_small_allowance_is_not_rounded_away():
    assert Allowance(calls_per_session=0.1).calls(Activity(sessions=30)) == 3


def test_a_pause_comes_before_all_else():
    assert refused(wanted(), Budget(day=Cap(tokens=None)), at(is_paused=True)).reason is Stop.PAUSED


def test_days_are_those_of_utc():
    assert rules.day_of(NOW) == "2026-05-28"
    assert rules.day_of(MIDNIGHT - 1) == "2026-05-28"
    assert rules.day_of(MIDNIGHT) == "2026-05-29"
    assert rules.day_end(MIDNIGHT) == MIDNIGHT + 86_400 * MICROSECONDS
    assert rules.day_begin("2026-05-29") == MIDNIGHT
    assert rules.days_before(NOW, 6) == "2026-05-22"


@pytest.mark.parametrize("outcome", ["model_timed_out", "model_cancelled", "model_malformed"])
def test_of_a_call_that_broke_off_uncounted_what_was_sent_counts(outcome: str):
    sent = Tokens(input=70, output=30)

    assert rules.charged(sent, Tokens(input=0, output=0), outcome) == Tokens(input=70, output=0)
    assert rules.charged(sent, Tokens(input=5, output=1), outcome) == Tokens(input=5, output=1)


@pytest.mark.parametrize("outcome", ["ok", "model_rate_limited", "model_unreachable", "model_unauthorized"])
def test_what_a_provider_did_not_take_costs_nothing(outcome: str):
    nothing = Tokens(input=0, output=0)

    assert rules.charged(Tokens(input=70, output=30), nothing, outcome) == nothing


amounts = st.integers(0, 10**7)
prices = st.builds(Price, input=amounts, output=amounts, cached=amounts)


@given(prices, st.integers(0, 10**6), st.integers(0, 10**6), st.data())
def test_what_a_call_costs_is_never_more_than_what_was_reserved(
    price: Price, most_in: int, most_out: int, data: st.DataObject
):
    used = data.draw(st.integers(0, most_in))
    tokens = Tokens(
        input=used, output=data.draw(st.integers(0, most_out)), cached=data.draw(st.integers(0, used))
    )

    assert price.of(tokens) <= price.at_most(Tokens(input=most_in, output=most_out))


@given(
    st.integers(0, 5_000),
    st.integers(0, 5_000),
    st.integers(0, 300),
    st.one_of(st.none(), st.integers(0, 5_000)),
    st.one_of(st.none(), st.integers(0, 5_000)),
)
def test_a_grant_is_within_every_cap(
    today: int, of_project: int, tokens: int, cap: int | None, project_cap: int | None
):
    budget = Budget(day=Cap(tokens=cap), project=Cap(tokens=project_cap))

    found = decide(
        wanted(tokens), budget, at(today=Spent(tokens=today), project_today=Spent(tokens=of_project))
    )

    fits = (cap is None or today + tokens <= cap) and (
        project_cap is None or of_project + tokens <= project_cap
    )
    assert isinstance(found, Granted) == fits

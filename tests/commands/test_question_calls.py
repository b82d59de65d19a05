"""Calls of models that a question makes: under the budget of all, without a job."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memory_core import limits
from memory_core.commands.question_calls import ReserveQuestionCall, SettleQuestionCall
from memory_core.domain.budget import Budget, Cap, Spent
from tests.factories import Store, database
from tests.jobs.calling import allow, spent_today, sweep_lost, usage, working
from tests.jobs.working import kind, registered


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = database(tmp_path)
    with registered(kind(uses_model=True)):
        yield store
    store.close()


def reserve(store: Store, call: bytes, tokens: int = 100) -> Any:
    return store.apply(
        ReserveQuestionCall(
            call=call,
            project=None,
            provider="openai",
            model="gpt-x",
            input_tokens=tokens - tokens // 4,
            output_tokens_max=tokens // 4,
            prompt="reranking.v1",
        )
    )


def settle(store: Store, call: bytes) -> Any:
    return store.apply(
        SettleQuestionCall(call=call, input_tokens=50, output_tokens=10, cached_tokens=0, outcome="ok")
    )


def test_a_question_s_call_is_reserved_then_settled_once_and_summed_up_beside_those_of_jobs(store: Store):
    call = os.urandom(16)

    assert reserve(store, call)["granted"] is True
    assert spent_today(store) == Spent(calls=1, tokens=100)
    assert (settle(store, call), settle(store, call)) == ({}, {})

    assert spent_today(store) == Spent(calls=1, tokens=60)
    (day,) = usage(store)
    assert (day["kind"], day["failed"], day["lost"]) == ("rerank", 0, 0)
    assert reserve(store, call).code == "conflict"


def test_questions_and_jobs_share_one_budget(store: Store):
    allow(store, Budget(day=Cap(tokens=150)))
    assert reserve(store, os.urandom(16))["granted"] is True

    assert working(store).reserve(100)["granted"] is False
    assert reserve(store, os.urandom(16))["granted"] is False


def test_a_call_that_nobody_settles_is_lost_only_after_whoever_asked_gave_up_and_is_put_right(store: Store):
    call = os.urandom(16)
    reserve(store, call)

    store.clock.advance(limits.RERANK_SECONDS)
    assert sweep_lost(store) == 0
    store.clock.advance(limits.QUESTION_CALL_LOST_SECONDS)
    assert sweep_lost(store) == 1
    assert spent_today(store) == Spent(calls=1, tokens=100)
    settle(store, call)

    assert spent_today(store) == Spent(calls=1, tokens=60)


def test_a_job_s_call_is_not_settled_as_a_question_s(store: Store):
    call = working(store).reserve(100)["call"]

    assert settle(store, call).code == "not_found"
    assert settle(store, os.urandom(16)).code == "not_found"

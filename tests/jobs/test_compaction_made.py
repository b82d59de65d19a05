"""By whom a summary is made: a model where one is configured, may be asked and takes so much; else a rule."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import memory_core.jobs.compaction as compaction
from memory_core import limits
from memory_core.models.errors import BadAnswer, TooLong
from memory_core.models.metered import BudgetReached
from tests.factories import Store, database
from tests.jobs.compacting import Model, compute, queued, work
from tests.jobs.sessions import working


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = database(tmp_path)
    yield store
    store.close()


def test_by_a_model_where_one_is_configured(store: Store):
    agent = working(store, 2)
    job_id = queued(agent, 2)
    model = Model()

    made = compute(store, job_id, model)

    assert made == compaction.Summary(
        text="They chose SQLite.", made_by="model", prompt="compaction.v1", model="model-1"
    )
    (request,) = model.asked
    assert request.max_output_tokens == 1_024
    assert request.prompt == "compaction.v1"
    assert '"voice":"prompt","text":"Prompt 1"' in request.messages[0].text
    assert "Prompt 1" not in request.system


def test_the_payload_says_which_model_made_it(store: Store):
    agent = working(store, 2)
    queued(agent, 2)
    agent.release()

    work(store, Model())

    summary = json.loads(agent.events[-1]["payload_json"])["summary"]
    assert summary == {
        "text": "They chose SQLite.",
        "made_by": "model",
        "prompt": "compaction.v1",
        "model": "model-1",
    }


def test_oversized_source_is_summed_up_by_rule(store: Store):
    agent = working(store, 2)
    job_id = queued(agent, 2)
    model = Model(context_tokens=1_200)

    assert compute(store, job_id, model).made_by == "rules"
    assert model.asked == []


@pytest.mark.parametrize(
    "error",
    [TooLong(), BudgetReached("used up", reason="tokens"), BudgetReached("too much", reason="too_large")],
)
def test_where_the_model_may_not_be_asked_a_rule_does_it(store: Store, error: Exception):
    agent = working(store, 2)

    assert compute(store, queued(agent, 2), Model(error=error)).made_by == "rules"


def test_a_budget_that_others_hold_for_a_moment_is_waited_for(store: Store):
    agent = working(store, 2)

    with pytest.raises(BudgetReached):
        compute(store, queued(agent, 2), Model(error=BudgetReached("reserved", reason="reserved")))


def test_an_empty_summary_of_a_model_is_a_failure_that_is_tried_again(store: Store):
    agent = working(store, 2)

    with pytest.raises(BadAnswer):
        compute(store, queued(agent, 2), Model(says="  \n"))


def test_a_part_that_is_too_large_is_read_from_its_end_and_summed_up_by_rule(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    agent = working(store, 12)
    job_id = queued(agent, 20)
    monkeypatch.setattr(limits, "REPLAY_EVENTS_MAX", 7)
    model = Model()

    made = compute(store, job_id, model)

    assert (made.made_by, model.asked) == ("rules", [])
    assert "Prompt 10" in made.text
    assert "Prompt 6" not in made.text


def test_what_does_not_fit_into_a_worker_is_summed_up_by_rule(store: Store, monkeypatch: pytest.MonkeyPatch):
    agent = working(store, 12)
    job_id = queued(agent, 20)
    monkeypatch.setattr(limits, "TRANSCRIPT_WINDOW_MAX_BYTES", 600)

    assert compute(store, job_id, Model()).made_by == "rules"

"""Compactions: queued once for a boundary that there is; and a second one over the first."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_core.commands.compaction import QueueCompaction, planned
from memory_core.commands.job_control import RetryJob
from memory_core.domain.command import Refusal
from memory_core.domain.compaction import Policy
from memory_core.domain.job import Failure
from memory_core.errors import Corrupt
from memory_core.ids import id_text
from memory_core.store import compactions
from tests.factories import Store, database
from tests.jobs.compacting import compacted, compute, queued, work, worker
from tests.jobs.sessions import Agent, working
from tests.jobs.working import job_of, look


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = database(tmp_path)
    yield store
    store.close()


def test_compaction_queue_is_idempotent_and_requires_existing_boundary(store: Store):
    agent = working(store, 3)

    first = agent.compact(4)
    assert agent.compact(4) == first | {"is_new": False}
    assert [agent.compact(at).code for at in (0, -1, 7)] == ["invalid"] * 3

    agent.release()
    assert work(store)["state"] == "completed"
    again = agent.compact(4)
    assert (again["job"]["id"], again["job"]["state"]) == (first["job"]["id"], "completed")


def test_compaction_boundary_cannot_split_atomic_turn(store: Store):
    agent = working(store, 3)

    refused = agent.compact(3)

    assert (refused.code, "turn" in refused.message) == ("invalid", True)


def test_while_one_is_under_way_another_boundary_is_refused(store: Store):
    agent = working(store, 3)
    agent.compact(2)

    assert agent.compact(4).code == "conflict"


def test_what_it_is_made_of_is_written_down(store: Store):
    agent = working(store, 3)
    job_id = queued(agent, 4)

    row = compactions.one(look(store), job_id)
    events = agent.events

    assert row is not None
    assert (row["event_count"], row["first_event_id"], row["last_event_id"], row["sha256"]) == (
        4,
        events[0]["id"],
        events[3]["id"],
        events[3]["digest"],
    )
    assert job_of(store, job_id).source_digest == events[3]["digest"]


def test_somebody_elses_session_is_not_there(store: Store):
    agent = working(store, 2)
    refused = store.apply(QueueCompaction(session=agent.session, through_sequence=2), principal="eve")

    assert refused.code == "not_found"


def test_a_second_compaction_begins_with_the_first_summary(store: Store):
    agent = compacted(store, turns=6, through=4)
    agent.claim()
    agent.replay()
    for number in range(7, 13):
        agent.say(f"Prompt {number}", f"Answer {number}")
    queued(agent, 17)
    agent.release()

    assert work(store)["state"] == "completed"

    text = json.loads(agent.events[-1]["payload_json"])["summary"]["text"]
    assert "## Earlier summary" in text
    assert "Prompt 1 → Answer 1" in text
    assert "- Prompt 4 → Answer 4" in text


def test_no_boundary_lies_before_the_summary_of_an_earlier_compaction(store: Store):
    agent = compacted(store, turns=6, through=4)

    assert agent.compact(8).code == "invalid"
    assert agent.compact(12).code == "invalid"
    assert not isinstance(agent.compact(13), Refusal)


def test_a_failed_one_that_is_tried_again_after_a_later_one_took_effect_is_refused(store: Store):
    agent = working(store, 4)
    old = queued(agent, 2)
    agent.release()
    one = worker(store)
    one.take()
    one.fail(Failure.PROVIDER_REFUSED, permanent=True)
    queued(agent, 4)
    assert work(store)["state"] == "completed"

    store.apply(RetryJob(job=id_text(old)))

    assert work(store)["state"] == "failed"
    assert [event["kind"] for event in agent.events].count("summary") == 1


def test_a_second_plan_weighs_the_first_summary_and_never_ends_before_it(store: Store):
    agent = compacted(store, turns=6, through=4)
    window = Policy(context_window_tokens=100)

    # Four turns lie before the summary, none after it: nothing may go yet.
    assert planned(look(store), agent.state, window) is None

    agent.claim()
    agent.replay()
    for number in range(7, 11):
        agent.say(f"Prompt {number}", f"Answer {number}")
    made = planned(look(store), agent.state, Policy(context_window_tokens=3_000))
    assert made is not None
    assert made.through_sequence == 13


def test_a_plan_counts_bytes_of_payloads_or_what_the_client_reports(store: Store):
    agent = Agent(store).start()
    agent.claim()
    for _ in range(6):
        agent.say("é" * 500, "x")
    total = store.all("SELECT sum(length(CAST(payload_json AS BLOB))) AS n FROM session_events")[0]["n"]

    policy = Policy(context_window_tokens=total, preserved_turns=2)

    counted = planned(look(store), agent.state, policy)
    reported = planned(look(store), agent.state, policy, current_tokens=total // 2)

    assert total > 6_000
    assert counted is not None
    assert counted.current_tokens == total
    assert reported is None


def test_what_changed_under_an_earlier_summary_is_found(store: Store):
    agent = compacted(store, turns=6, through=4)
    job_id = queued(agent, 13)
    with store.transaction():
        store.connection.execute(
            "UPDATE session_events SET digest = randomblob(32) WHERE session_id = ? AND sequence = 4",
            (agent.session,),
        )

    with pytest.raises(Corrupt):
        compute(store, job_id)

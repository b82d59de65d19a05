"""Compactions: queued once, given away only while nobody works on the session, installed as an event of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

import memory_core.jobs.compaction as compaction
from memory_core import job_kind, limits
from memory_core.commands.compaction import QueueCompaction, planned
from memory_core.commands.durable_sessions import RenewLease
from memory_core.commands.job_control import RetryJob
from memory_core.commands.jobs import expire_leases
from memory_core.domain.command import Refusal
from memory_core.domain.compaction import Policy
from memory_core.domain.job import Failure, State
from memory_core.errors import Corrupt
from memory_core.ids import id_bytes, id_text
from memory_core.models.errors import BadAnswer, TooLong
from memory_core.models.metered import BudgetReached
from memory_core.models.port import StructuredCompletion, Usage
from memory_core.store import compactions, job_claims
from tests.factories import Store, database
from tests.jobs.sessions import Agent, working
from tests.jobs.working import Worker, job_of, look


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = database(tmp_path)
    yield store
    store.close()


@dataclass
class Model:
    """A language model that says the same to everybody."""

    says: str = "They chose SQLite."
    error: Exception | None = None
    name: str = "some"
    model: str = "model-1"
    max_output_tokens: int = 4_096
    context_tokens: int = 128_000
    asked: list[Any] = field(default_factory=list)

    def complete_structured(self, request: Any, schema: Any) -> StructuredCompletion:
        self.asked.append(request)
        if self.error:
            raise self.error
        return StructuredCompletion(
            value={"summary": self.says}, usage=Usage(input_tokens=9, output_tokens=5), model=self.model
        )


@dataclass
class Tools:
    model: Any = None


def worker(store: Store) -> Worker:
    return Worker(store, queues=("compaction",))


def compute(store: Store, job_id: bytes, model: Any = None) -> compaction.Summary:
    """What the worker sends back, by the way it travels."""
    kind = job_kind.kinds.get("compaction")
    source = kind.prepare(look(store), job_of(store, job_id))
    output = kind.compute(kind.read_input(msgspec.json.encode(source)), Tools(model))  # type: ignore[arg-type]
    return kind.read_output(msgspec.json.encode(output))


def work(store: Store, model: Any = None) -> Any:
    """Claim the next compaction and finish it; the answer."""
    one = worker(store)
    job_id = one.take()
    assert job_id is not None
    return one.finish(compute(store, job_id, model))


def queued(agent: Agent, through: int) -> bytes:
    answer = agent.compact(through)
    assert not isinstance(answer, Refusal), answer
    return id_bytes(answer["job"]["id"])


def compacted(store: Store, turns: int = 6, through: int = 4) -> Agent:
    """A session whose first events are summed up, and that nobody holds."""
    agent = working(store, turns)
    queued(agent, through)
    agent.release()
    assert work(store)["state"] == "completed"
    return agent


# --- queueing ---


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


# --- claim, completion ---


def test_compaction_claim_and_completion_are_durable(store: Store):
    agent = working(store, 6)
    job_id = queued(agent, 8)
    agent.release()

    assert work(store)["state"] == "completed"

    row = compactions.one(look(store), job_id)
    event = agent.events[-1]
    payload = json.loads(event["payload_json"])
    assert row is not None
    assert (row["summary_event_id"], row["made_by"]) == (event["id"], "rules")
    assert (event["kind"], event["sequence"], event["turn_size"]) == ("summary", 13, 1)
    assert payload["compaction"] == {
        "job_id": id_text(job_id),
        "through_sequence": 8,
        "source": {
            "event_count": 8,
            "first_event_id": id_text(agent.events[0]["id"]),
            "last_event_id": id_text(agent.events[7]["id"]),
            "sha256": agent.events[7]["digest"].hex(),
        },
    }
    assert "- Prompt 4 → Answer 4" in payload["summary"]["text"]
    assert "Prompt 5" not in payload["summary"]["text"]
    assert agent.state.last_sequence == 13
    assert job_of(store, job_id).result == {
        "made_by": "rules",
        "through_sequence": 8,
        "summary_sequence": 13,
        "summary_bytes": len(payload["summary"]["text"].encode()),
    }


def test_compaction_claim_skips_live_session_lease(store: Store):
    held = working(store, 2)
    waits = queued(held, 2)
    free = working(store, 2)
    given = queued(free, 2)
    free.release()

    one = worker(store)
    assert one.take() == given
    assert one.finish(compute(store, given))["state"] == "completed"
    assert one.take() is None
    job = job_of(store, waits)
    assert (job.state, job.claims, job.failures, job.waits_for) == (State.PENDING, 0, 0, "contended")

    held.release()
    wake(store, 31)
    assert one.take() == waits


def test_complete_compaction_refuses_live_session_lease(store: Store):
    agent = working(store, 2)
    job_id = queued(agent, 2)
    agent.release()
    one = worker(store)
    one.take()
    output = compute(store, job_id)
    agent.claim()

    assert one.finish(output)["state"] == "pending"

    job = job_of(store, job_id)
    assert (job.failures, job.waits_for) == (0, "contended")
    assert agent.state.last_sequence == 4
    agent.release()
    wake(store, 31)
    assert one.take() == job_id
    assert one.finish(output)["state"] == "completed"


def test_compaction_append_forces_claimed_session_to_replay_before_next_turn(store: Store):
    """Whoever comes back with a lease that is over, too: it knows nothing of the summary."""
    agent = working(store, 2)
    queued(agent, 2)
    store.clock.advance(limits.SESSION_LEASE_SECONDS + 1)
    assert work(store)["state"] == "completed"

    renewed = store.apply(
        RenewLease(session=agent.session, lease_hash=agent.lease, directory=agent.directory.id)
    )
    assert not isinstance(renewed, Refusal)
    assert agent.say("More", "Done").code == "replay_required"

    agent.release()
    assert agent.claim()["must_replay"] is True
    assert agent.say("More", "Done").code == "replay_required"
    agent.replay()
    assert agent.say("More", "Done")["last_sequence"] == 7


def test_a_summary_is_not_installed_over_events_that_were_changed(store: Store):
    agent = working(store, 2)
    job_id = queued(agent, 2)
    agent.release()
    one = worker(store)
    one.take()
    output = compute(store, job_id)
    with store.transaction():
        store.connection.execute(
            "UPDATE session_events SET digest = randomblob(32) WHERE session_id = ? AND sequence = 2",
            (agent.session,),
        )

    assert one.finish(output)["state"] == "pending"
    assert job_of(store, job_id).last_error == Failure.SOURCE_CHANGED.sentence
    assert agent.state.last_sequence == 4


def test_events_that_were_changed_are_found_before_anything_is_computed(store: Store):
    agent = working(store, 3)
    job_id = queued(agent, 4)
    edit(store, agent, 1)

    with pytest.raises(Corrupt, match="event 1 "):
        compute(store, job_id)


def test_of_a_session_that_was_deleted_meanwhile_nothing_is_written(store: Store):
    agent = working(store, 2)
    job_id = queued(agent, 2)
    agent.release()
    one = worker(store)
    one.take()
    output = compute(store, job_id)
    with store.transaction():
        store.connection.execute(
            "UPDATE durable_sessions SET deleted_at = 1 WHERE session_id = ?", (agent.session,)
        )

    assert one.finish(output)["state"] == "failed"


# --- tries ---


def test_lease_can_renew_after_expiry_until_recovery_schedules_retry(store: Store):
    agent = working(store, 2)
    job_id = queued(agent, 2)
    agent.release()
    one = worker(store)
    one.take()
    one.renew()
    store.clock.advance(limits.JOB_LEASE_SECONDS + 1)
    assert not isinstance(one.renew(), Refusal)

    store.clock.advance(limits.JOB_LEASE_SECONDS + 1)
    with store.transaction() as tx:
        assert expire_leases(tx) == 1
    assert one.renew().code == "stale_lease"
    job = job_of(store, job_id)
    assert (job.state, job.failures, job.waits_for) == (State.PENDING, 1, "retry")


def test_retry_backoff_does_not_block_newer_compaction(store: Store):
    first = working(store, 2)
    failing = queued(first, 2)
    first.release()
    one = worker(store)
    one.take()
    one.fail(Failure.PROVIDER)
    second = working(store, 2)
    newer = queued(second, 2)
    second.release()

    assert job_of(store, failing).not_before is not None
    assert one.take() == newer


def test_third_compaction_failure_is_inspectable_and_explicitly_retryable(store: Store):
    agent = working(store, 2)
    job_id = queued(agent, 2)
    agent.release()
    one = worker(store)
    for _ in range(3):
        wake(store, limits.JOB_BACKOFF_MAX_SECONDS + 1)
        assert one.take() == job_id
        one.fail(Failure.ANSWER)

    assert job_of(store, job_id).state is State.FAILED
    (listed,) = compactions.listed(look(store), agent.session)
    assert listed[0].job.last_error == Failure.ANSWER.sentence
    assert listed[1]["through_sequence"] == 2

    store.apply(RetryJob(job=id_text(job_id)))
    assert work(store)["state"] == "completed"


def test_permanent_compaction_failure_dead_letters_immediately(store: Store):
    agent = working(store, 2)
    job_id = queued(agent, 2)
    agent.release()
    one = worker(store)
    one.take()
    one.fail(Failure.PROVIDER_REFUSED, permanent=True)

    assert job_of(store, job_id).state is State.FAILED


def test_worker_failure_columns_reject_inconsistent_queue_state(store: Store):
    agent = working(store, 2)
    job_id = queued(agent, 2)

    for change in (
        "state = 'running'",
        "state = 'failed'",
        "state = 'completed'",
        "failures = 1",
        "last_error = 'x'",
        "not_before = 1",
        "claim_hash = randomblob(32)",
    ):
        with pytest.raises(Exception, match=r"CHECK"), store.transaction():
            store.connection.execute(f"UPDATE jobs SET {change} WHERE id = ?", (job_id,))
    for change in (
        "made_by = 'rules'",
        "summary_event_id = randomblob(16)",
        "event_count = 1",
        "sha256 = x''",
    ):
        with pytest.raises(Exception, match=r"CHECK"), store.transaction():
            store.connection.execute(f"UPDATE compactions SET {change} WHERE job_id = ?", (job_id,))


# --- the second one ---


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


# --- by a model ---


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


# --- much ---


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


def edit(store: Store, agent: Agent, sequence: int) -> None:
    """Change an event behind memoryd's back."""
    with store.transaction():
        store.connection.execute(
            "UPDATE session_events SET payload_json = '{}' WHERE session_id = ? AND sequence = ?",
            (agent.session, sequence),
        )


def wake(store: Store, seconds: float) -> None:
    store.clock.advance(seconds)
    with store.transaction() as tx:
        job_claims.wake(tx, 128)

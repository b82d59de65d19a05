"""Distillations: queued once for a transcript, made by model or rule, entered as knowledge with where it came from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

import memory_core.jobs.distillation as distillation
from memory_core import job_kind, limits
from memory_core.commands.job_control import RetryJob
from memory_core.commands.jobs import expire_leases
from memory_core.domain.job import Failure, Reason, State
from memory_core.errors import Corrupt
from memory_core.ids import id_bytes, id_text
from memory_core.models.errors import BadAnswer, TooLong
from memory_core.models.metered import BudgetReached
from memory_core.models.port import StructuredCompletion, Usage
from memory_core.models.schema import NotFitting, read_answer
from memory_core.store import compactions, job_claims
from tests.factories import Store, database
from tests.jobs.sessions import Agent, working
from tests.jobs.working import Worker, job_of, look

TOLD = "Remember that deployments run on Fridays only."
KEY = "deployments run on fridays only"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = database(tmp_path)
    yield store
    store.close()


@dataclass
class Model:
    """A language model that finds the same candidates in everything."""

    finds: list[dict[str, Any]] = field(default_factory=list)
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
            value={"candidates": self.finds}, usage=Usage(input_tokens=9, output_tokens=5), model=self.model
        )


@dataclass
class Tools:
    model: Any = None


def upsert(key: str, content: str = "It is so.", confidence: float = 0.8) -> dict[str, Any]:
    return {"action": "upsert", "key": key, "content": content, "confidence": confidence}


def tombstone(key: str, confidence: float = 0.8) -> dict[str, Any]:
    return {"action": "tombstone", "key": key, "confidence": confidence}


def worker(store: Store) -> Worker:
    return Worker(store, queues=("distillation",))


def compute(store: Store, job_id: bytes, model: Any = None) -> distillation.Found:
    """What the worker sends back, by the way it travels."""
    kind = job_kind.kinds.get("distillation")
    source = kind.prepare(look(store), job_of(store, job_id))
    output = kind.compute(kind.read_input(msgspec.json.encode(source)), Tools(model))  # type: ignore[arg-type]
    return kind.read_output(msgspec.json.encode(output))


def work(store: Store, model: Any = None) -> Any:
    one = worker(store)
    job_id = one.take()
    assert job_id is not None
    return one.finish(compute(store, job_id, model))


def closed(store: Store, *said: str) -> tuple[Agent, bytes]:
    """A session in which that was said, closed; and the job that its end made."""
    agent = working(store)
    for text in said or (TOLD,):
        agent.say(text, "Noted.")
    return agent, id_bytes(agent.close()["job"])


def facts(store: Store) -> dict[str, str]:
    """What is known now."""
    rows = store.all(
        "SELECT k.key, v.content FROM knowledge AS k JOIN knowledge_versions AS v"
        " ON v.knowledge_id = k.id AND v.version = k.active_version WHERE k.tombstoned_at IS NULL"
    )
    return {row["key"]: row["content"] for row in rows}


def test_a_session_that_ends_is_distilled_once(store: Store):
    agent, job_id = closed(store)

    agent.claim()
    agent.replay()
    assert agent.close()["job"] == id_text(job_id)
    assert work(store)["state"] == "completed"
    agent.claim()
    agent.replay()
    assert agent.close()["job"] == id_text(job_id)
    assert worker(store).take() is None

    # More was said: that is another transcript.
    agent.claim()
    agent.replay()
    agent.say("More", "Done")
    assert agent.close()["job"] != id_text(job_id)


def test_an_empty_session_makes_no_job(store: Store):
    assert working(store).close()["job"] is None


def test_distillation_is_idempotent_and_provenance_survives_session_deletion(store: Store):
    agent, job_id = closed(store)
    head = agent.state

    assert work(store)["state"] == "completed"

    assert facts(store) == {KEY: "Deployments run on Fridays only."}
    with store.transaction():
        store.connection.execute("DELETE FROM sessions WHERE id = ?", (agent.session,))
    (version,) = store.all("SELECT * FROM knowledge_versions")
    assert (
        version["provenance_session_id"],
        version["source_first_sequence"],
        version["source_last_sequence"],
        version["source_sha256"],
        version["confidence"],
    ) == (agent.session, 1, head.last_sequence, head.digest, 0.9)
    assert version["job_id"] == job_id
    assert version["candidate_index"] == 0
    assert version["source_session_id"] is None


def test_what_became_of_it_is_counted_in_the_job(store: Store):
    _, job_id = closed(store, TOLD, "We decided to keep SQLite.")

    work(store)

    assert job_of(store, job_id).result == {
        "made_by": "rules",
        "through_sequence": 4,
        "upserted": 2,
        "tombstoned": 0,
        "skipped": 0,
    }
    row = compactions.distillation(look(store), job_id)
    assert row is not None
    assert (row["made_by"], row["completed_at"]) == ("rules", store.clock.now_us())


def test_a_model_finds_facts_and_takes_others_away(store: Store):
    closed(store)
    assert work(store, Model(finds=[upsert("port", "Staging listens on 8443.")]))["state"] == "completed"
    assert facts(store) == {"port": "Staging listens on 8443."}

    _, job_id = closed(store, "Staging is gone.")
    work(store, Model(finds=[tombstone("port"), tombstone("nothing of that name")]))

    assert facts(store) == {}
    result = job_of(store, job_id).result
    assert result is not None
    assert (result["tombstoned"], result["skipped"], result["made_by"]) == (1, 1, "model")


def test_distilled_tombstone_keeps_confidence_and_provenance(store: Store):
    closed(store)
    work(store, Model(finds=[upsert("port")]))
    agent, job_id = closed(store, "Staging is gone.")
    head = agent.state

    work(store, Model(finds=[tombstone("port", 0.77)]))

    (row,) = store.all("SELECT * FROM knowledge_tombstones")
    assert (row["confidence"], row["origin"], row["job_id"]) == (0.77, "distillation", job_id)
    assert (row["provenance_session_id"], row["source_last_sequence"], row["source_sha256"]) == (
        agent.session,
        head.last_sequence,
        head.digest,
    )


def test_what_a_model_finds_is_never_pinned(store: Store):
    _, job_id = closed(store)
    found = compute(store, job_id, Model(finds=[upsert("a") | {"pinned": True}]))

    assert [each["pinned"] for each in found.candidates] == [False]


@pytest.mark.parametrize(
    "finds",
    [
        [upsert("a"), tombstone("a")],
        [upsert("a", confidence=2.0)],
        [upsert(f"k{at}") for at in range(limits.DISTILLATION_CANDIDATES_MAX + 1)],
        [upsert("a") | {"why": "x"}],
        [upsert("k" * 300)],
    ],
)
def test_candidates_that_cannot_be_are_a_failure_that_is_tried_again(
    store: Store, finds: list[dict[str, Any]]
):
    _, job_id = closed(store)

    with pytest.raises(BadAnswer):
        compute(store, job_id, Model(finds=finds))


def test_candidates_that_a_worker_made_up_are_refused(store: Store):
    _, job_id = closed(store)
    one = worker(store)
    one.take()

    assert (
        one.finish(distillation.Found(candidates=({"action": "upsert"},), made_by="model"))["state"]
        == "failed"
    )
    assert job_of(store, job_id).last_error == Failure.REFUSED.sentence


def test_a_fact_about_what_was_redacted_is_dropped(store: Store):
    closed(store)

    work(store, Model(finds=[upsert("a", "The key is [REDACTED:api_key:ab12]."), upsert("b")]))

    assert list(facts(store)) == ["b"]


def test_what_is_shown_to_a_model_is_fenced_and_bounded(store: Store):
    _, job_id = closed(store, *[f"Prompt {at} " + "x" * 400 for at in range(30)])
    model = Model(context_tokens=8_000)

    assert compute(store, job_id, model).made_by == "model"

    (request,) = model.asked
    assert len(request.messages[0].text.encode()) < 8_000
    assert "Prompt 29" in request.messages[0].text
    assert "Prompt 0 " not in request.messages[0].text
    assert "memoryd:recalled" in request.messages[0].text


@pytest.mark.parametrize("error", [TooLong(), BudgetReached("used up", reason="tokens")])
def test_where_the_model_may_not_be_asked_a_rule_does_it(store: Store, error: Exception):
    _, job_id = closed(store)

    assert compute(store, job_id, Model(error=error)).made_by == "rules"


def test_oversized_source_is_not_a_failure(store: Store):
    """A model without room for anything: a rule does it."""
    _, job_id = closed(store)

    assert compute(store, job_id, Model(context_tokens=500)).made_by == "rules"


@pytest.mark.parametrize(
    ("text", "is_taken"),
    [
        ('{"candidates": []}', True),
        ('```json\n{"candidates": []}\n```', True),
        ('```\n{"candidates": []}\n```', True),
        ('Here: {"candidates": []}', False),
        ('```json\n{"candidates": []}\n```\nDone.', False),
        ('{"candidates": []} {"candidates": []}', False),
        ('{"candidates": [], "more": 1}', False),
        ("[]", False),
    ],
)
def test_strict_json_accepts_plain_or_fenced_values(text: str, is_taken: bool):
    try:
        read_answer(text, distillation._SCHEMA)
    except NotFitting:
        assert not is_taken
    else:
        assert is_taken


# --- contention and tries ---


def test_a_session_that_is_held_again_is_not_distilled_and_nothing_is_counted(store: Store):
    agent, job_id = closed(store)
    one = worker(store)
    one.take()
    output = compute(store, job_id)
    agent.claim()

    assert one.finish(output)["state"] == "pending"
    assert facts(store) == {}
    wake(store, 31)
    assert one.take() is None
    job = job_of(store, job_id)
    assert (job.failures, job.claims, job.waits_for) == (0, 1, "contended")

    agent.release()
    wake(store, 31)
    assert one.take() == job_id
    assert one.finish(output)["state"] == "completed"


def test_third_distillation_failure_dead_letters_and_manual_retry_resets_it(store: Store):
    _, job_id = closed(store)
    one = worker(store)
    for _ in range(3):
        wake(store, limits.JOB_BACKOFF_MAX_SECONDS + 1)
        assert one.take() == job_id
        one.fail(Failure.ANSWER)
    assert job_of(store, job_id).state is State.FAILED

    store.apply(RetryJob(job=id_text(job_id)))

    assert (job_of(store, job_id).failures, job_of(store, job_id).state) == (0, State.PENDING)
    assert work(store)["state"] == "completed"


def test_cancelled_distillation_release_does_not_count_failure(store: Store):
    _, job_id = closed(store)
    one = worker(store)
    one.take()

    one.release(Reason.STOPPING)

    job = job_of(store, job_id)
    assert (job.state, job.failures, job.not_before) == (State.PENDING, 0, None)


def test_recovered_distillation_rejects_stale_failure_writer(store: Store):
    _, job_id = closed(store)
    first, second = worker(store), Worker(store, name="worker-2", queues=("distillation",))
    first.take()
    store.clock.advance(limits.JOB_LEASE_SECONDS + 1)
    with store.transaction() as tx:
        expire_leases(tx)
    assert second.take() == job_id

    assert first.fail().code == "stale_lease"
    assert first.finish(compute(store, job_id)).code == "stale_lease"
    assert second.finish(compute(store, job_id))["state"] == "completed"


def test_close_only_queues_distillation_for_an_explicit_worker(store: Store):
    _, job_id = closed(store)

    assert job_of(store, job_id).state is State.PENDING
    assert facts(store) == {}


def test_a_transcript_that_was_changed_is_found(store: Store):
    agent, job_id = closed(store)
    with store.transaction():
        store.connection.execute(
            "UPDATE session_events SET payload_json = '{}' WHERE session_id = ? AND sequence = 1",
            (agent.session,),
        )

    with pytest.raises(Corrupt):
        compute(store, job_id)


def wake(store: Store, seconds: float) -> None:
    store.clock.advance(seconds)
    with store.transaction() as tx:
        job_claims.wake(tx, 128)

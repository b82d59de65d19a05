"""Compactions: given away only while nobody works on the session, installed as an event of it, tried again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_core import limits
from memory_core.commands.durable_sessions import RenewLease
from memory_core.commands.job_control import RetryJob
from memory_core.commands.jobs import expire_leases
from memory_core.domain.command import Refusal
from memory_core.domain.job import Failure, State
from memory_core.errors import Corrupt
from memory_core.ids import id_text
from memory_core.jobs.distillation import Found
from memory_core.store import compactions, durable_ages, session_jobs
from tests.factories import Store, database
from tests.jobs.compacting import compute, edit, queued, wake, work, worker
from tests.jobs.sessions import working
from tests.jobs.working import Worker, job_of, look


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = database(tmp_path)
    yield store
    store.close()


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


def test_a_summary_waits_until_a_long_turn_that_was_never_published_is_cleared_away(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    agent = working(store, 6)
    job_id = queued(agent, 4)
    agent.stage("a", "b", "c", "d", "e", of=6)
    monkeypatch.setattr(limits, "DELETED_ROWS_PER_SLICE", 2)
    store.clock.advance(limits.SESSION_LEASE_SECONDS + 1)

    states = [work(store)["state"] for _ in range(3)]

    assert states == ["pending", "pending", "completed"]
    assert job_of(store, job_id).failures == 0
    last = store.all("SELECT kind, sequence FROM session_events ORDER BY sequence DESC LIMIT 1")[0]
    assert (last["kind"], last["sequence"]) == ("summary", 13)


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


def test_a_failure_is_heard_past_the_lease_until_somebody_noticed_its_end(store: Store):
    """The token decides, not the clock: what a worker has to say of its job is not lost because it is late."""
    agent = working(store, 2)
    job_id = queued(agent, 2)
    agent.release()
    one = worker(store)
    one.take()
    store.clock.advance(10 * limits.JOB_LEASE_SECONDS)

    assert not isinstance(one.fail(Failure.ANSWER), Refusal)

    job = job_of(store, job_id)
    assert (job.state, job.failures, job.last_error) == (State.PENDING, 1, Failure.ANSWER.sentence)
    assert one.fail(Failure.ANSWER).code == "stale_lease"


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


def test_scheduler_starts_with_compaction_then_alternates_actual_work(store: Store):
    """One slot begins with the queue that is named first; a slot of another queue waits for nobody."""
    ids = []
    for _ in range(2):
        agent = working(store, 2)
        ids.append(queued(agent, 2))
        agent.close()
    one = Worker(store, queues=("compaction", "distillation"))
    other = Worker(store, name="worker-2", queues=("distillation",))

    assert one.take() == ids[0]
    taken = other.take()
    assert taken is not None
    assert job_of(store, taken).kind == "distillation"
    assert one.finish(compute(store, ids[0]))["more"] is True
    assert one.take() == ids[1]


def test_a_summary_that_comes_after_the_distillation_leaves_nothing_undistilled(store: Store):
    agent = working(store, 3)
    queued(agent, 2)
    agent.close()

    def old() -> list[bytes]:
        now = store.clock.now_us()
        return durable_ages.past_age(look(store), before=now, now=now, limit=9)

    assert (old(), session_jobs.undistilled(look(store), agent.session, 6)) == ([], 6)
    distilling = Worker(store, queues=("distillation",))
    distilling.take()
    assert distilling.finish(Found(candidates=(), made_by="rules"))["state"] == "completed"
    assert work(store)["state"] == "completed"

    assert agent.state.last_sequence == 7
    assert (old(), session_jobs.undistilled(look(store), agent.session, 7)) == ([agent.session], 0)

    agent.claim()
    agent.replay()
    agent.say("More", "Done")
    agent.release()
    assert (old(), session_jobs.undistilled(look(store), agent.session, 9)) == ([], 2)

"""Workers and whoever works on the session at once, with real threads through the real gate: one of two comes first, and both know."""

from __future__ import annotations

from typing import Any

from memory_core.commands.jobs import expire_leases
from memory_core.ids import id_bytes
from tests.durable.agent import ok
from tests.durable.pooling import PoolWorker
from tests.durable.working import HERE, Client, at_once, lines_of, said
from tests.web.house import House

ROUNDS = 6


def written(house: House, turns: int = 3) -> Client:
    client = Client(house)
    ok(client.claim())
    for number in range(turns):
        ok(client.append(said(f"prompt {number}"), said(f"answer {number}")))
    return client


def compacting(house: House, client: Client) -> PoolWorker:
    """A worker that has the session's compaction up to event 4 in hand."""
    ok(client.post("compactions", {"through_sequence": 4}))
    ok(client.post("release"))
    worker = PoolWorker(house)
    assert worker.take()
    return worker


def delete(client: Client) -> Any:
    return client.house.client().delete(client.root, headers=client.house.bearer)


def job(house: House, job_id: str) -> dict[str, Any]:
    return house.get(f"/api/v1/jobs/{job_id}").get_json()


def time_is_over_for(house: House, job_id: str) -> None:
    """The worker fell silent, and the writer has noticed."""
    house.connection.raw.execute("UPDATE jobs SET lease_until = 1 WHERE id = ?", (id_bytes(job_id),))
    assert house.engine.originate(expire_leases) == 1


def wake(house: House) -> None:
    """What waits to be tried again is due."""
    house.connection.raw.execute(
        "UPDATE jobs SET not_before = NULL, waits_for = NULL WHERE state = 'pending'"
    )


def test_complete_compaction_refuses_live_session_lease(house: House):
    """A claim and the end of a compaction at once: either the summary is there and must be read, or it waits, uncounted."""
    outcomes: set[str] = set()
    for _ in range(ROUNDS):
        client = written(house)
        worker = compacting(house, client)
        other = Client(house, client.id)

        claimed, finished = at_once(other.claim, worker.finish)

        found = ok(finished)["state"]
        outcomes.add(found)
        assert ok(claimed)["last_sequence"] == (7 if found == "completed" else 6)
        lines = other.resume()
        assert lines[0]["head"]["compacted_through"] == (4 if found == "completed" else None)
        assert job(house, worker.job)["failures"] == 0
        assert ok(other.append(said("more")))["last_sequence"] == other.last_sequence
        ok(other.post("release"))
        ok(delete(other))
    assert outcomes <= {"completed", "pending"}


def test_compaction_claim_skips_live_session_lease(house: House):
    """A person and a worker come for the session at once: nobody works on a summary while somebody works on the session."""
    for _ in range(ROUNDS):
        client = written(house)
        ok(client.post("compactions", {"through_sequence": 4}))
        ok(client.post("release"))
        other, worker = Client(house, client.id), PoolWorker(house)

        claimed, is_given = at_once(other.claim, worker.take)

        assert ok(claimed)["last_sequence"] == 6
        if is_given:
            assert ok(worker.finish())["state"] == "pending"
        other.resume()
        assert ok(other.append(said("more")))["last_sequence"] == 7
        ok(other.post("release"))
        ok(delete(other))
    assert house.rows("SELECT count(*) AS n FROM jobs WHERE failures > 0") == [{"n": 0}]


def test_a_session_is_not_deleted_while_its_compaction_runs_and_is_behind_it(house: House):
    client = written(house)
    worker = compacting(house, client)

    refused = delete(client)

    assert (refused.status_code, refused.get_json()["code"]) == (409, "session_busy")
    assert ok(worker.finish())["state"] == "completed"
    assert ok(delete(client))["deleted"] is True
    assert house.rows("SELECT * FROM compactions") == house.rows("SELECT * FROM session_events") == []


def test_a_deletion_and_the_end_of_a_compaction_at_once_leave_no_row(house: House):
    for _ in range(ROUNDS):
        client = written(house)
        worker = compacting(house, client)

        deleted, finished = at_once(lambda c=client: delete(c), worker.finish)

        assert ok(finished)["state"] == "completed"
        assert deleted.status_code in (200, 409)
        if deleted.status_code == 409:
            ok(delete(client))
        for table in ("durable_sessions", "session_events", "compactions"):
            assert house.rows(f"SELECT * FROM {table}") == [], table


def test_a_worker_that_comes_back_after_the_deletion_writes_nothing(house: House):
    client = written(house)
    worker = compacting(house, client)
    time_is_over_for(house, worker.job)
    ok(delete(client))

    for answer in (worker.renew(), worker.finish(), worker.fail()):
        assert (answer.status_code, answer.get_json()["code"]) == (409, "stale_lease")
    assert house.rows("SELECT * FROM session_events") == house.rows("SELECT * FROM compactions") == []
    assert house.rows("SELECT * FROM dead_letters") == []


def test_recovered_distillation_rejects_stale_failure_writer(house: House):
    """The one that fell silent says that it failed while the one that has the job now is done: the first is not heard."""
    for _ in range(ROUNDS):
        client = written(house)
        ok(client.post("close", {"directory": HERE}))
        first, second = (PoolWorker(house, "distillation", name) for name in ("silent", "quick"))
        assert first.take()
        time_is_over_for(house, first.job)
        wake(house)
        assert second.take()
        assert second.job == first.job
        failures = job(house, first.job)["failures"]

        failed, finished, renewed = at_once(first.fail, second.finish, first.renew)

        assert ok(finished)["state"] == "completed"
        assert {failed.get_json()["code"], renewed.get_json()["code"]} == {"stale_lease"}
        assert (job(house, first.job)["state"], job(house, first.job)["failures"]) == ("completed", failures)


def test_of_many_workers_who_want_one_compaction_one_gets_it(house: House):
    for _ in range(ROUNDS):
        client = written(house)
        ok(client.post("compactions", {"through_sequence": 4}))
        ok(client.post("release"))
        workers = [PoolWorker(house, name=f"worker-{number}") for number in range(3)]

        given = at_once(*(worker.take for worker in workers))

        assert sorted(given) == [False, False, True]
        assert ok(workers[given.index(True)].finish())["state"] == "completed"


def test_a_compaction_that_is_asked_for_many_times_at_once_is_one(house: House):
    client = written(house)

    answers = at_once(*(lambda: client.post("compactions", {"through_sequence": 4}),) * 5)

    jobs = {ok(answer)["job"]["id"] for answer in answers}
    assert len(jobs) == 1
    assert house.rows("SELECT count(*) AS n FROM compactions") == [{"n": 1}]
    assert sum(answer.get_json()["is_new"] for answer in answers) == 1


def test_a_replay_under_way_is_cut_and_not_mixed_where_a_summary_comes_in(house: House):
    """The lease ended while its holder read slowly, a compaction wrote, and the holder comes back to the same answer."""
    client = written(house)
    ok(client.post("compactions", {"through_sequence": 4}))
    answer = client.replay()
    house.connection.raw.execute("UPDATE durable_sessions SET lease_until = 1")
    wake(house)
    worker = PoolWorker(house)
    assert worker.take()
    assert ok(worker.finish())["state"] == "completed"

    lines = lines_of(answer)

    last = lines[-1]
    assert "error" in last or last["end"]["last_sequence"] == 6
    ok(client.renew())
    assert client.append(said("more")).get_json()["code"] == "replay_required"
    assert client.resume()[0]["head"]["compacted_through"] == 4

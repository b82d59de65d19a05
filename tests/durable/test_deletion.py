"""Deleting a session: what goes, what stays, and when it may not."""

from __future__ import annotations

import uuid

import pytest

from memory_core import limits
from memory_core.ids import id_bytes
from memory_core.job_kind import digest_of, enqueue
from memory_core.store import session_jobs
from tests.durable.working import HERE, Client, said
from tests.jobs.working import kind, registered
from tests.web.house import House


@pytest.fixture
def session(house: House) -> Client:
    client = Client(house, title="To go")
    client.claim()
    client.append(*[said(f"{number}") for number in range(5)])
    client.post("release")
    return client


def delete(client: Client, query: str = "", **headers: str):
    return client.house.client().delete(f"{client.root}{query}", headers=client.house.bearer | headers)


def test_a_deletion_says_first_what_goes_and_what_stays(session: Client):
    told = delete(session, "?preview=1").get_json()

    assert (told["title"], told["events"], told["undistilled_events"]) == ("To go", 5, 5)
    assert told["has_unfinished_turn"] is False
    assert told["is_secure_erasure"] is False
    assert {"git_history", "backups", "free_pages", "knowledge"} <= set(told["stays"])
    assert session.house.get(session.root).status_code == 200


def test_a_deleted_session_leaves_no_row(session: Client):
    house, key = session.house, str(uuid.uuid4())

    answer = delete(session, **{"Idempotency-Key": key}).get_json()

    assert (answer["deleted"], answer["left"]) == (True, False)
    for table in ("sessions", "durable_sessions", "session_events"):
        assert house.rows(f"SELECT count(*) AS n FROM {table}") == [{"n": 0}]
    assert house.get(session.root).status_code == 404
    assert delete(session).status_code == 404
    again = delete(session, **{"Idempotency-Key": key}).get_json()
    assert (again["deleted"], again["left"]) == (True, False)


def test_a_long_session_goes_in_slices_and_is_seen_by_nobody_meanwhile(
    session: Client, monkeypatch: pytest.MonkeyPatch
):
    house = session.house
    monkeypatch.setattr(limits, "DELETED_ROWS_PER_SLICE", 2)
    monkeypatch.setattr(limits, "DELETED_SLICES_PER_REQUEST", 1)

    assert delete(session).get_json()["left"] is True
    assert house.get(session.root).status_code == 404
    assert house.get("/api/v1/durable-sessions").get_json() == []
    assert house.rows("SELECT max(sequence) AS last FROM session_events") == [{"last": 1}]
    assert session.claim().status_code == 404


def test_a_session_that_somebody_works_on_is_not_deleted(session: Client):
    session.claim()

    answer = delete(session)

    assert (answer.status_code, answer.get_json()["code"]) == (409, "session_busy")
    assert session.house.get(session.root).status_code == 200


def test_a_session_that_a_worker_works_on_is_not_deleted(session: Client):
    house = session.house
    with registered(kind()):
        job, _ = house.engine.originate(
            lambda tx: enqueue(
                tx,
                "test_sum",
                source_digest=digest_of("x"),
                subject=session_jobs.subject_of(id_bytes(session.id)),
            )
        )
        house.connection.raw.execute(
            "UPDATE jobs SET state = 'running', claims = 1, claim_hash = zeroblob(32), worker = 'w', claimed_at = 1,"
            " lease_until = ? WHERE id = ?",
            (house.parts.clock.now_us() + 60_000_000, job),
        )
        answer = delete(session)

    assert (answer.status_code, answer.get_json()["code"]) == (409, "session_busy")


def test_an_unfinished_turn_is_told_before_it_is_lost(session: Client):
    house = session.house
    house.connection.raw.execute(
        "INSERT INTO active_turns VALUES (?, randomblob(16), '{}', 0, 0, 0, 1, 1)", (id_bytes(session.id),)
    )

    assert delete(session, "?preview=1").get_json()["has_unfinished_turn"] is True
    assert delete(session).get_json()["deleted"] is True
    assert house.rows("SELECT * FROM active_turns") == []


def test_a_session_with_an_unfinished_turn_is_not_closed(session: Client):
    session.house.connection.raw.execute(
        "INSERT INTO active_turns VALUES (?, randomblob(16), '{}', 0, 0, 0, 1, 1)", (id_bytes(session.id),)
    )
    claimed = session.claim().get_json()

    answer = session.post("close", {"directory": HERE})

    assert claimed["has_journal"] is True
    assert (answer.status_code, answer.get_json()["code"]) == (409, "conflict")

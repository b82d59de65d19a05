"""What a turn that was never published left behind goes in slices: no command deletes more, and nothing of it is ever seen."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from memory_core import limits
from memory_core.commands.durable_leftovers import DropStaged
from memory_core.commands.durable_staging import StageTurn
from memory_core.errors import Unavailable
from memory_core.store import durable_sessions
from tests.durable.directly import Holder, code, say, started
from tests.durable.working import HERE, Client, lines_of, said, texts_of
from tests.factories import Store
from tests.web.house import House

SLICE = 3


@pytest.fixture(autouse=True)
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "DELETED_ROWS_PER_SLICE", SLICE)


def rows(store: Store) -> int:
    return store.all("SELECT count(*) AS n FROM session_events")[0]["n"]


def stopped_in_a_long_turn(store: Store, events: int = 10) -> Holder:
    """It has written one turn, and staged most of another."""
    holder = Holder(store, started(store))
    holder.claim()
    holder.append(say("kept"))
    answer = store.apply(
        StageTurn(
            session=holder.session,
            lease_hash=holder.lease,
            directory=holder.directory,
            expected_last_sequence=1,
            turn_size=events + 1,
            first_index=0,
            events=tuple(say(f"lost {number}") for number in range(events)),
        ),
        token_scope="write",
    )
    assert answer["staged"] == events
    return holder


@pytest.mark.parametrize("step", ["release", "claim", "close"])
def test_whoever_takes_or_gives_back_a_session_deletes_a_slice_at_most(store: Store, step: str):
    holder = stopped_in_a_long_turn(store)
    if step == "claim":
        store.clock.advance(limits.SESSION_LEASE_SECONDS + 1)

    assert code(getattr(holder, step)()) == ""

    assert rows(store) == 11 - SLICE


def test_a_write_over_more_than_a_slice_is_refused_and_writes_nothing(store: Store):
    holder = stopped_in_a_long_turn(store)

    refused = holder.append(say("too soon"))

    assert (code(refused), "new key" in refused.message, rows(store)) == ("conflict", True, 11)
    drop = DropStaged(session=holder.session, lease_hash=holder.lease)
    left = [store.apply(drop, token_scope="write")["left"] for _ in range(4)]
    assert left == [True, True, True, False]
    assert rows(store) == 1
    assert store.apply(drop, token_scope="write") == {"left": False}
    assert code(holder.append(say("now"))) == ""


def test_long_payloads_make_smaller_slices(store: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "DELETED_BYTES_PER_SLICE", 20)
    holder = stopped_in_a_long_turn(store)

    store.apply(DropStaged(session=holder.session, lease_hash=holder.lease), token_scope="write")

    assert rows(store) == 10


def test_only_its_holder_clears_a_session_that_is_held(store: Store):
    holder = stopped_in_a_long_turn(store)
    other = DropStaged(session=holder.session, lease_hash=bytes(32))

    assert code(store.apply(other, token_scope="write")) == "session_busy"
    assert code(store.apply(other, token_scope="write", principal="eve")) == "not_found"
    assert rows(store) == 11
    store.clock.advance(limits.SESSION_LEASE_SECONDS + 1)
    assert store.apply(other, token_scope="write") == {"left": True}


def test_what_is_published_is_never_deleted(store: Store):
    holder = stopped_in_a_long_turn(store)
    for _ in range(6):
        store.apply(DropStaged(session=holder.session, lease_hash=holder.lease), token_scope="write")

    with store.transaction() as tx:
        session = durable_sessions.one(tx, holder.session)
    assert session is not None
    assert (session.last_sequence, rows(store)) == (1, 1)


# --- over HTTP -------------------------------------------------------------------------------------


def staged(client: Client, count: int = 10) -> dict[str, Any]:
    body = {"directory": HERE, "expected_last_sequence": client.last_sequence, "turn_size": count + 1}
    events = [said(f"lost {number}") for number in range(count)]
    return client.post("turns/staged", body | {"first_index": 0, "events": events}).get_json()


@pytest.fixture
def client(house: House) -> Client:
    made = Client(house)
    made.claim()
    return made


def test_the_next_turn_has_it_cleared_first_and_notices_nothing(client: Client):
    staged(client)
    client.post("release")
    client.claim()

    assert client.append(said("kept")).get_json()["last_sequence"] == 1

    assert texts_of(lines_of(client.replay())) == ["kept"]
    assert client.house.rows("SELECT count(*) AS n FROM session_events") == [{"n": 1}]


def test_a_long_turn_begins_anew_over_what_another_left(client: Client):
    assert staged(client)["staged"] == 10
    assert staged(client, 5)["staged"] == 5
    assert client.house.rows("SELECT count(*) AS n FROM session_events") == [{"n": 5}]


def test_a_turn_that_was_cut_and_is_sent_again_finds_its_own_slices(
    client: Client, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(limits, "TURN_SLICE_EVENTS_MAX", 2)
    key, events = str(uuid.uuid4()), [said(f"event {number}") for number in range(11)]
    with monkeypatch.context() as patched:

        def cut(*_: Any) -> None:
            raise Unavailable("cut before it was published")

        patched.setattr("web.calls.CallContext.submit", cut)
        assert client.append(*events, **{"Idempotency-Key": key}).status_code == 503

    answer = client.append(*events, **{"Idempotency-Key": key})

    assert (answer.status_code, answer.get_json()["last_sequence"]) == (200, 11)


def test_who_may_not_write_is_told_why_and_clears_nothing(client: Client):
    staged(client)
    mine, client.lease = client.lease, "A" * 43

    assert client.append(said("not mine")).get_json()["code"] in ("stale_lease", "replay_required")
    assert client.house.rows("SELECT count(*) AS n FROM session_events") == [{"n": 10}]
    client.lease = mine
    assert client.append(said("mine")).status_code == 200

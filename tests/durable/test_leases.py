"""Leases of durable sessions, by the clock."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from memory_core import limits
from memory_core.commands.durable_turns import append_turn, new_events
from memory_core.store import driver, durable_sessions
from tests.durable.directly import Holder, code, say, started, stored
from tests.factories import Store, database


@pytest.fixture
def store(tmp_path: Path) -> Generator[Store]:
    made = database(tmp_path)
    yield made
    made.close()


@pytest.fixture
def holder(store: Store) -> Holder:
    made = Holder(store, started(store))
    made.claim()
    return made


def other(holder: Holder) -> Holder:
    return Holder(holder.store, holder.session, name="two")


def test_session_events_are_ordered_and_durable(store: Store, holder: Holder):
    holder.append(say("a"), say("b"))
    holder.append(say("c"))

    events = stored(store, holder.session)

    assert [event.payload_json for event in events] == ['{"text":"a"}', '{"text":"b"}', '{"text":"c"}']
    assert [event.sequence for event in events] == [1, 2, 3]


def test_append_turn_commits_complete_batch_with_consecutive_sequences(store: Store, holder: Holder):
    holder.append(say("a"))
    holder.append(say("b"), say("c"), say("d"))

    turn = stored(store, holder.session)[1:]

    assert [(e.sequence, e.turn_index, e.turn_size) for e in turn] == [(2, 0, 3), (3, 1, 3), (4, 2, 3)]
    assert len({e.turn_id for e in turn}) == len({e.created_at for e in turn}) == 1


def test_append_turn_rolls_back_every_event_when_one_insert_fails(store: Store, holder: Holder):
    holder.append(say("a"))
    store.connection.execute(
        "CREATE TRIGGER failing BEFORE INSERT ON session_events WHEN new.turn_index = 2 BEGIN SELECT raise(ABORT, 'no'); END"
    )
    with pytest.raises(Exception, match="no"):
        holder.append(say("b"), say("c"), say("d"))
    store.connection.execute("DROP TRIGGER failing")

    assert len(stored(store, holder.session)) == 1
    assert holder.append(say("b"))["last_sequence"] == 2


def test_a_lease_ends_at_its_deadline_and_not_before(store: Store, holder: Holder):
    store.clock.advance(limits.SESSION_LEASE_SECONDS - 1)
    assert code(other(holder).claim()) == "session_busy"
    assert code(holder.append()) == ""  # and extends it

    store.clock.advance(limits.SESSION_LEASE_SECONDS - 1)
    assert code(holder.append()) == ""
    store.clock.advance(limits.SESSION_LEASE_SECONDS)
    assert code(holder.append()) == "stale_lease"
    assert code(other(holder).claim()) == ""


def test_a_lease_can_be_renewed_after_its_end_until_somebody_claims(store: Store, holder: Holder):
    store.clock.advance(10 * limits.SESSION_LEASE_SECONDS)

    assert code(holder.renew()) == ""
    assert code(holder.append()) == ""
    store.clock.advance(10 * limits.SESSION_LEASE_SECONDS)
    other(holder).claim()
    assert code(holder.renew()) == "stale_lease"


def test_reclaimed_session_claim_invalidates_first_writer(store: Store, holder: Holder):
    holder.append(say("a"))
    store.clock.advance(limits.SESSION_LEASE_SECONDS)
    second = other(holder)
    second.claim()
    second.replay()
    second.append(say("b"))

    for answer in (holder.append(), holder.renew(), holder.release(), holder.replay(), holder.title("t")):
        assert code(answer) == "stale_lease"
    assert code(holder.close()) == "stale_lease"


def test_a_lease_that_maintenance_cleared_cannot_be_renewed(store: Store, holder: Holder):
    store.clock.advance(limits.SESSION_LEASE_SECONDS)
    with store.transaction() as tx:
        durable_sessions.clear_lease(tx, holder.session)

    assert code(holder.renew()) == "stale_lease"


def test_released_is_released(store: Store, holder: Holder):
    assert holder.release() == {"released": True}
    assert code(holder.append()) == "stale_lease"
    assert code(other(holder).claim()) == ""


def test_every_lease_must_replay_for_itself(store: Store, holder: Holder):
    holder.append(say("a"))
    holder.release()
    holder.claim()
    holder.replay()
    assert code(holder.append()) == ""
    holder.release()

    holder.claim()
    assert code(holder.append()) == "replay_required"


def test_compaction_append_forces_claimed_session_to_replay_before_next_turn(store: Store, holder: Holder):
    """The holder was silent past its lease, a compaction wrote, and the holder came back with the same token."""
    holder.append(say("a"))
    store.clock.advance(limits.SESSION_LEASE_SECONDS)
    with store.transaction() as tx:
        session = durable_sessions.one(tx, holder.session)
        assert session is not None
        append_turn(tx, session, new_events([say("summary")]), by_holder=False)

    assert code(holder.append()) == "replay_required"
    holder.renew()
    assert code(holder.append()) == "replay_required"
    holder.replay()
    assert holder.append()["last_sequence"] == 3


def test_a_claim_never_sets_the_clock_of_a_session_back(store: Store, holder: Holder):
    store.connection.execute("UPDATE durable_sessions SET updated_at = updated_at + 1000000")
    before = store.all("SELECT updated_at FROM durable_sessions")
    holder.release()

    holder.claim()

    assert store.all("SELECT updated_at FROM durable_sessions") == before


def test_a_title_without_lease_clears_a_claim_that_is_over(store: Store, holder: Holder):
    store.clock.advance(limits.SESSION_LEASE_SECONDS)

    assert other(holder).title("New", with_lease=False) == {"title": "New"}
    assert code(holder.renew()) == "stale_lease"


def test_a_session_that_hooks_write_is_claimed_by_nobody(store: Store, holder: Holder):
    holder.release()
    store.connection.execute("UPDATE durable_sessions SET origin = 'hooks'")

    assert code(holder.claim()) == "conflict"


def test_bounds_are_counted_in_bytes(holder: Holder, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "EVENT_PAYLOAD_MAX_BYTES", 50)
    monkeypatch.setattr(limits, "TURN_MAX_BYTES", 80)

    assert code(holder.append(say("x" * 39))) == ""  # 50 bytes as JSON
    assert code(holder.append(say("é" * 20))) == "invalid"  # 31 characters of JSON, 51 bytes
    assert code(holder.append(say("é" * 15), say("é" * 15))) == "invalid"
    assert code(holder.append(say("é" * 14), say("é" * 14))) == ""


def test_the_database_counts_bytes_too(store: Store, holder: Holder):
    holder.append(say("x"))
    payload = '"' + "é" * (limits.EVENT_PAYLOAD_MAX_BYTES // 2) + '"'

    with pytest.raises(driver.Error, match="payload_json"):
        store.connection.execute("UPDATE session_events SET payload_json = ?", (payload,))


def test_a_turn_has_an_end(holder: Holder):
    assert code(holder.append(*[say("x")] * limits.TURN_EVENTS_MAX)) == ""
    assert code(holder.append(*[say("x")] * (limits.TURN_EVENTS_MAX + 1))) == "invalid"


def test_an_asset_must_be_catalogued_with_that_size(store: Store, holder: Holder):
    from memory_core.commands.durable_turns import EventAsset, TurnEvent

    def event(size: int) -> TurnEvent:
        asset = EventAsset(sha256=b"a" * 32, bytes=size, kind="image")
        return TurnEvent(kind="user_message", payload={}, assets=(asset,))

    assert code(holder.append(event(3))) == "invalid"
    store.connection.execute("INSERT INTO assets VALUES (?, 3, 1, 1, 7)", (b"a" * 32,))
    assert code(holder.append(event(4))) == "invalid"
    assert code(holder.append(event(3))) == ""
    assert store.all("SELECT ordinal, kind FROM session_assets") == [{"ordinal": 0, "kind": "image"}]
    assert store.all("SELECT unreferenced_at FROM assets") == [{"unreferenced_at": None}]
    with pytest.raises(driver.Error, match="FOREIGN KEY"):
        store.connection.execute("DELETE FROM assets")


def test_a_claim_that_writes_nothing_leaves_a_closed_session_closed(store: Store, holder: Holder):
    def ends() -> list[Any]:
        sql = (
            "SELECT d.closed_at, s.ended_at, s.end_reason FROM durable_sessions AS d"
            " JOIN sessions AS s ON s.id = d.session_id"
        )
        return [(row["closed_at"], row["ended_at"], row["end_reason"]) for row in store.all(sql)]

    holder.append(say("a"))
    holder.close()
    before = ends()
    assert before[0][0] is not None
    store.clock.advance(5)
    again = other(holder)
    assert code(again.claim()) == ""
    assert ends() == before
    again.release()
    assert ends() == before

    again.claim()
    again.replay()
    assert code(again.append(say("b"))) == ""
    assert ends() == [(None, None, None)]


def test_a_session_that_is_held_says_until_when(store: Store, holder: Holder):
    refused = other(holder).claim()

    assert refused.detail["lease_until"] in refused.message

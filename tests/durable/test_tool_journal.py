"""The journal of a turn, as its commands keep it in a database."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from memory_core.commands.durable_sessions import CloseSession, RenewLease
from memory_core.commands.durable_turns import AppendTurn, TurnEvent
from memory_core.commands.tool_journal import DiscardBatch
from memory_core.domain.agent_message import (
    AssetKind,
    AssetReference,
    Message,
    Role,
    Text,
    check_history,
)
from memory_core.domain.audit_event import Cancelled, TurnFailed
from memory_core.domain.command import Refusal
from memory_core.domain.directory import Directory
from memory_core.domain.tool_journal import NOT_EXECUTED_TEXT, Journal, denial_text
from memory_core.errors import StorageFailed
from memory_core.ids import id_bytes, id_text
from tests.durable.holder import PLACE, Worker, events, history, refused
from tests.durable.journals import HERE, call
from tests.factories import Store

DIGEST = "ab" * 32
PICTURE = Message(role=Role.USER, content=(Text("look"), AssetReference(DIGEST, 68, AssetKind.IMAGE)))


def catalogue(store: Store) -> None:
    store.connection.execute(
        "INSERT INTO assets(sha256, bytes, created_at, verified_at, unreferenced_at) VALUES (?, 68, 1, 1, 5)",
        (bytes.fromhex(DIGEST),),
    )


def test_a_turn_with_two_rounds_is_written_round_by_round(store: Store, ada: Worker):
    one, two, three = call(), call("read_file", path="a.py"), call()
    ada.begin()
    ada.plan(one, two)
    ada.ask(one)
    ada.decide(one, is_allowed=True)
    ada.start(one)
    ada.start(two)
    ada.complete(two, "b = 1")
    ada.complete(one)
    first = ada.checkpoint()
    ada.plan(three)
    ada.run(three)
    second = ada.checkpoint()
    last = ada.end()

    assert [first["first_sequence"], second["first_sequence"], last["first_sequence"]] == [
        1,
        first["last_sequence"] + 1,
        second["last_sequence"] + 1,
    ]
    assert ada.journal() == Journal(directory=HERE)
    check_history(history(store))
    assert [m.role.value for m in history(store)] == [
        *("user", "assistant", "tool", "tool"),
        *("assistant", "tool"),
        "assistant",
    ]
    turns = store.all(
        "SELECT turn_id, count(*) AS n, max(turn_size) AS size FROM session_events GROUP BY turn_id"
    )
    assert len(turns) == 3
    assert all(row["n"] == row["size"] for row in turns)


def test_input_is_kept_before_anything_else(store: Store, ada: Worker):
    ada.begin()

    (row,) = store.all("SELECT * FROM active_turns")
    assert json.loads(row["input_json"])["role"] == "user"
    assert (row["checkpoint_count"], row["event_count"]) == (0, 0)
    assert ada.kinds() == []
    assert "a turn is open" in refused(ada.begin())


def test_a_call_is_started_in_the_database_before_it_runs(store: Store, ada: Worker):
    one = call()
    ada.begin()
    ada.plan(one)
    assert ada.start(one) == {"call_id": one.id, "state": "started"}

    (row,) = store.all("SELECT * FROM tool_invocations")
    assert (row["state"], row["result_json"], json.loads(row["arguments_json"])) == (
        "started",
        None,
        one.arguments,
    )


def test_what_is_started_is_the_call_that_was_planned(ada: Worker):
    one = call()
    ada.begin()
    ada.plan(one)
    assert "not the call that was planned" in refused(ada.start(one, b"x" * 16), "invalid")
    assert "not the call that was planned" in refused(ada.ask(one, received=b"x" * 16), "invalid")
    assert "another directory" in refused(
        ada.ask(one, asked_in=Directory(host="box", device="1", inode="2", path="/x")), "invalid"
    )


@pytest.mark.parametrize("is_allowed", [False, True], ids=["approval_open", "allowed_and_not_started"])
def test_a_batch_whose_later_call_is_cancelled_can_still_be_closed(
    store: Store, ada: Worker, is_allowed: bool
):
    """The wedge: a result in the tool's name would be written, and no load would accept the journal after that."""
    first, second = call(), call()
    ada.begin()
    ada.plan(first, second)
    ada.run(first)
    ada.ask(second)
    if is_allowed:
        ada.decide(second, is_allowed=True)
    refused(ada.complete(second, "cancelled", is_error=True), "invalid")

    ada.complete(second, NOT_EXECUTED_TEXT, is_error=True, origin="not_executed")

    assert not isinstance(ada.checkpoint(), Refusal)
    ada.end()
    check_history(history(store))
    decided = [e for e in events(store) if e["type"] == "approval_resolved"]
    assert [e["decision"]["type"] for e in decided] == ["allow_once" if is_allowed else "deny"]


def test_denied_approval_does_not_invoke_tool_and_keeps_history_complete(store: Store, ada: Worker):
    one = call()
    ada.begin()
    ada.plan(one)
    ada.ask(one)
    ada.decide(one, is_allowed=False, reason="my key is in there: [REDACTED:secret:1a2b]")
    refused(ada.start(one), "invalid")
    # What the client says came through redaction by itself; the words that are kept are those of the decision.
    ada.complete(one, denial_text("my key is in there: [REDACTED:key:9f00]"), is_error=True)
    ada.checkpoint()

    assert history(store)[-1].text == denial_text("my key is in there: [REDACTED:secret:1a2b]")


def test_schema_mismatch_becomes_complete_recoverable_tool_result(store: Store, ada: Worker):
    one = call()
    ada.begin()
    ada.plan(one)
    ada.complete(one, "the arguments do not fit: path is missing", is_error=True)
    ada.checkpoint()
    ada.end()

    check_history(history(store))
    assert "tool_started" not in [event["type"] for event in events(store)]


def test_fatal_tool_checkpoints_complete_uncertain_batch(store: Store, ada: Worker):
    one, two = call(), call()
    ada.begin()
    ada.plan(one, two)
    ada.start(one)
    ada.complete(one, "the tool died; its effect may have happened", is_error=True, origin="uncertain")
    ada.complete(two, NOT_EXECUTED_TEXT, is_error=True, origin="not_executed")
    ada.checkpoint()
    ada.fail("a tool died", TurnFailed(turn_id=ada.turn, message="a tool died"))

    check_history(history(store))
    assert ada.kinds()[-2:] == ["audit", "error"]


def test_event_sink_failure_before_tool_invocation_rolls_back(store: Store, ada: Worker):
    ada.begin()
    ada.plan(call())
    discarded = ada.apply(DiscardBatch(**ada.holder, turn=id_bytes(ada.turn)))
    ada.fail("the sink broke", Cancelled(turn_id=ada.turn))

    assert discarded == {"discarded": True}
    assert ada.kinds() == ["audit", "error"]
    assert history(store) == []


def test_max_round_limit_rolls_back_complete_tool_batch(ada: Worker):
    ada.begin()
    ada.plan(call(), call())
    ada.fail("20 rounds", TurnFailed(turn_id=ada.turn, message="20 rounds"))

    assert ada.journal() == Journal(directory=HERE)


def test_a_turn_may_end_with_its_last_batch(store: Store, ada: Worker):
    one = call()
    ada.begin()
    ada.plan(one)
    ada.run(one)
    assert not isinstance(ada.end(None), Refusal)
    assert ada.kinds()[-2:] == ["tool_call", "tool_result"]
    assert ada.journal() == Journal(directory=HERE)


def test_a_batch_with_a_started_call_is_neither_discarded_nor_failed(ada: Worker):
    one = call()
    ada.begin()
    ada.plan(one)
    ada.start(one)
    refused(ada.apply(DiscardBatch(**ada.holder, turn=id_bytes(ada.turn))))
    refused(ada.fail("no", Cancelled(turn_id=ada.turn)))
    refused(ada.checkpoint())
    refused(ada.end())
    refused(ada.end(None))


def test_nobody_writes_between_a_call_and_its_result(ada: Worker):
    ada.begin()
    event = TurnEvent(kind="user_message", payload={"role": "user", "content": "hello"})
    append = AppendTurn(**ada.holder, expected_last_sequence=0, events=(event,))
    assert "journaled" in refused(ada.apply(append))
    ada.fail("stopped", Cancelled(turn_id=ada.turn))
    assert not isinstance(ada.apply(replace(append, expected_last_sequence=2)), Refusal)


def test_closing_waits_for_the_open_turn(ada: Worker):
    ada.begin()
    assert "not finished" in refused(ada.apply(CloseSession(**ada.holder)))
    ada.end()
    assert ada.apply(CloseSession(**ada.holder))["closed"]


def test_a_step_extends_the_lease(store: Store, ada: Worker):
    ada.begin()
    store.clock.advance(290)
    ada.plan(call())
    store.clock.advance(290)
    assert not isinstance(ada.apply(RenewLease(**ada.holder)), Refusal)
    assert not isinstance(ada.apply(DiscardBatch(**ada.holder, turn=id_bytes(ada.turn))), Refusal)


def test_a_checkpoint_is_written_where_its_writer_thinks_the_session_ends(ada: Worker):
    one = call()
    ada.begin()
    ada.plan(one)
    ada.run(one)
    answer = ada.checkpoint(expected_last_sequence=3)
    assert refused(answer, "stale_replay")
    assert answer.detail == {"expected": 3, "actual": 0}
    assert not isinstance(ada.checkpoint(expected_last_sequence=0), Refusal)


# --- who may ---------------------------------------------------------------------------------------

STEPS: dict[str, Callable[[Worker], Any]] = {
    "begin": Worker.begin,
    "plan": lambda w: w.plan(call()),
    "ask": lambda w: w.ask(call()),
    "decide": lambda w: w.decide(call(), is_allowed=True),
    "start": lambda w: w.start(call()),
    "complete": lambda w: w.complete(call()),
    "discard": lambda w: w.apply(DiscardBatch(**w.holder, turn=id_bytes(w.turn))),
    "checkpoint": Worker.checkpoint,
    "end": Worker.end,
    "fail": lambda w: w.fail("x", Cancelled(turn_id=w.turn)),
    "reconcile": lambda w: w.reconcile(call()),
    "publish": Worker.publish,
}


@pytest.mark.parametrize("name", STEPS)
def test_every_journal_write_needs_lease_directory_and_replay(store: Store, ada: Worker, name: str):
    step = STEPS[name]
    ada.begin()
    ada.end()
    ada.turn = id_text(store.ids.new())
    ada.journal_directory = Directory(host=PLACE.host, device=PLACE.device, inode="9", path="/elsewhere")
    refused(step(ada), "workspace_mismatch")
    ada.journal_directory = PLACE
    lease, ada.lease = ada.lease, b"x" * 32
    refused(step(ada), "stale_lease")
    ada.lease = lease
    store.clock.advance(301)
    refused(step(ada), "stale_lease")
    ada.claim()
    store.connection.execute("UPDATE durable_sessions SET has_replayed = 0")
    refused(step(ada), "replay_required")


def test_nobody_else_sees_or_steps(ada: Worker):
    ada.begin()
    other = ada.store.apply(
        DiscardBatch(**ada.holder, turn=id_bytes(ada.turn)), principal="bob", token_scope="write"
    )
    refused(other, "not_found")


# --- assets ----------------------------------------------------------------------------------------


def test_assets_of_an_open_turn_are_linked_until_the_transcript_has_them(store: Store, ada: Worker):
    assert "there is no asset" in refused(ada.begin(PICTURE), "invalid")
    catalogue(store)
    one = call()
    ada.begin(PICTURE)
    assert store.all("SELECT kind, ordinal FROM active_turn_assets") == [{"kind": "image", "ordinal": 0}]
    assert store.all("SELECT unreferenced_at FROM assets") == [{"unreferenced_at": None}]
    ada.plan(one)
    assert len(store.all("SELECT * FROM tool_batch_assets")) == 1
    ada.run(one)
    ada.checkpoint()
    assert store.all("SELECT * FROM tool_batch_assets") == []
    assert [row["kind"] for row in store.all("SELECT kind FROM session_assets")] == ["image"]
    ada.end()
    assert store.all("SELECT * FROM active_turn_assets") == []


def test_the_assets_of_a_failed_input_stay_with_its_failure(store: Store, ada: Worker):
    catalogue(store)
    ada.begin(PICTURE)
    ada.fail("no answer", Cancelled(turn_id=ada.turn))
    rows = store.all("SELECT e.kind FROM session_assets a JOIN session_events e ON e.id = a.event_id")
    assert rows == [{"kind": "error"}]


# --- all or nothing --------------------------------------------------------------------------------


def test_a_checkpoint_is_written_whole_or_not_at_all(store: Store, ada: Worker):
    one = call()
    ada.begin()
    ada.plan(one)
    ada.run(one)
    before = ada.journal()
    store.connection.execute(
        "CREATE TRIGGER broken BEFORE INSERT ON session_events WHEN new.kind = 'tool_result'"
        " BEGIN SELECT RAISE(ABORT, 'no'); END"
    )
    with pytest.raises(StorageFailed):
        ada.checkpoint()
    assert ada.journal() == before
    assert ada.kinds() == []

    store.connection.execute("DROP TRIGGER broken")
    assert not isinstance(ada.checkpoint(), Refusal)

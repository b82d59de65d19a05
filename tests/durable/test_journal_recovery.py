"""A journal that was interrupted is recovered once, and one that was damaged takes no step."""

from __future__ import annotations

import json

import pytest

from memory_core.domain.agent_message import check_history
from memory_core.domain.audit_event import Cancelled
from memory_core.domain.command import Refusal
from memory_core.errors import Corrupt
from memory_core.ids import id_text
from tests.durable.holder import Worker, events, history, refused
from tests.durable.journals import call
from tests.factories import Store


@pytest.mark.parametrize("rounds", [0, 2])
def test_recovers_tool_free_active_turns_at_both_checkpoint_states_once(
    store: Store, ada: Worker, rounds: int
):
    ada.begin()
    for _ in range(rounds):
        one = call()
        ada.plan(one)
        ada.run(one)
        ada.checkpoint()
    turn = ada.turn
    ada.vanish()

    report = ada.publish()

    counts = {name: report[name] for name in ("exact_results", "uncertain_results", "not_executed_results")}
    assert counts == {"exact_results": 0, "uncertain_results": 0, "not_executed_results": 0}
    assert (report["session_id"], report["turn_id"], report["interrupted_turn"]) == (
        id_text(ada.session),
        turn,
        True,
    )
    (error,) = store.all("SELECT payload_json FROM session_events WHERE kind = 'error'")
    told = json.loads(error["payload_json"])["record"]
    assert told == ("failed_turn_after_checkpoint" if rounds else "failed_turn")
    assert "nothing to recover" in refused(ada.publish(), "invalid")
    check_history(history(store))


def test_mixed_tool_recovery_refuses_uncertain_then_reconciles_exactly_once(store: Store, ada: Worker):
    exact, begun, idle = call(), call(), call()
    ada.begin()
    ada.plan(exact, begun, idle)
    ada.run(exact)
    ada.start(begun)
    ada.vanish()
    untouched = ada.journal()

    for one in (begun, idle):
        answer = ada.reconcile(one)
        refused(answer, "uncertain_calls")
        assert answer.detail == {"calls": [{"call_id": begun.id, "tool_name": "shell"}]}
    refused(ada.publish())
    assert ada.journal() == untouched
    ada.reconcile(begun, accept=True)
    ada.vanish()  # a crash between acceptance and publication
    assert ada.reconcile(idle) == {"call_id": idle.id, "state": "completed"}
    once = ada.journal()
    assert ada.reconcile(exact) == {"call_id": exact.id, "state": "completed"}
    assert ada.journal() == once, "asked for again it changes nothing"

    report = ada.publish()

    assert (report["exact_results"], report["uncertain_results"], report["not_executed_results"]) == (1, 1, 1)
    assert report["interrupted_turn"] is False
    assert history(store)[-3].text == "3 passed"
    check_history(history(store))
    refused(ada.publish(), "invalid")


def test_later_tool_batch_starts_after_durable_checkpoint_without_repeating_input(store: Store, ada: Worker):
    one, two = call(), call()
    ada.begin()
    ada.plan(one)
    ada.run(one)
    ada.checkpoint()
    ada.plan(two)
    ada.vanish()
    ada.reconcile(two)
    ada.publish()

    assert [m.role.value for m in history(store)] == ["user", "assistant", "tool", "assistant", "tool"]
    check_history(history(store))


def test_a_recovery_never_runs_a_tool_again(store: Store, ada: Worker):
    one = call()
    ada.begin()
    ada.plan(one)
    ada.start(one)
    ada.vanish()
    refused(ada.start(one))
    ada.reconcile(one, accept=True)
    ada.publish()
    assert [event["type"] for event in events(store)].count("tool_started") == 1


# --- damage ----------------------------------------------------------------------------------------

DAMAGE = {
    "a state": "UPDATE tool_invocations SET state = 'planned' WHERE ordinal = 1",
    "an unknown state": "UPDATE tool_invocations SET state = 'running' WHERE ordinal = 1",
    "an origin": "UPDATE tool_invocations SET result_origin = 'not_executed' WHERE ordinal = 0",
    "an error flag gone": "UPDATE tool_invocations SET result_is_error = NULL WHERE ordinal = 0",
    "arguments": """UPDATE tool_invocations SET arguments_json = '{"command":"rm"}' WHERE ordinal = 0""",
    "a tool": "UPDATE tool_invocations SET tool_name = 'other' WHERE ordinal = 0",
    "an ordinal": "UPDATE tool_invocations SET ordinal = 7 WHERE ordinal = 1",
    "a call less": "DELETE FROM tool_invocations WHERE ordinal = 1",
    "another turn": "UPDATE tool_batches SET turn_id = randomblob(16)",
    "messages": "UPDATE tool_batches SET messages_json = json_remove(messages_json, '$[0]')",
    "a message's version": "UPDATE tool_batches SET messages_json = json_set(messages_json, '$[1].version', 2)",
    "audit": "UPDATE tool_batches SET audit_json = json_remove(audit_json, '$[1]')",
    "an audit's record": "UPDATE tool_batches SET audit_json = json_set(audit_json, '$[1].record', 'x')",
    "no JSON": "UPDATE tool_batches SET audit_json = '['",
    "the turn": "DELETE FROM active_turns",
    "the input": "UPDATE active_turns SET input_json = json_set(input_json, '$.content[0].data', 'other')",
    "the input's role": "UPDATE active_turns SET input_json = json_set(input_json, '$.role', 'system')",
    "the checkpoints": "UPDATE active_turns SET checkpoint_count = 3",
    "an asset more": "INSERT INTO tool_batch_assets SELECT session_id, randomblob(32) FROM tool_batches",
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_journal_takes_no_step_and_its_lease_can_be_given_back(
    store: Store, ada: Worker, name: str
):
    one, two = call(), call()
    ada.begin()
    ada.plan(one, two)
    ada.run(one)
    ada.start(two)
    for pragma in ("ignore_check_constraints=ON", "foreign_keys=OFF"):
        store.connection.execute(f"PRAGMA {pragma}")
    store.connection.execute(DAMAGE[name])
    store.connection.execute("PRAGMA ignore_check_constraints=OFF")
    store.connection.execute("PRAGMA foreign_keys=ON")

    with pytest.raises(Corrupt):
        ada.journal()
    for answer in (
        ada.complete(two),
        ada.reconcile(two, accept=True),
        ada.checkpoint(),
        ada.publish(),
        ada.fail("x", Cancelled(turn_id=ada.turn)),
    ):
        refused(answer, "corrupt")
    assert ada.kinds() == []
    assert ada.release() == {"released": True}
    assert not isinstance(ada.claim(), Refusal), "somebody else is not shut out"


def test_a_seventeenth_call_is_damage(store: Store, ada: Worker):
    calls = [call() for _ in range(16)]
    ada.begin()
    ada.plan(*calls)
    assert not isinstance(ada.start(calls[0]), Refusal)
    store.connection.execute(
        "INSERT INTO tool_invocations(session_id, call_id, ordinal, tool_name, arguments_json, state, updated_at)"
        " SELECT session_id, 'x', 16, 'shell', '{}', 'planned', 1 FROM tool_batches"
    )
    assert "more than 16 calls" in refused(ada.start(calls[1]), "corrupt")

"""Recovery over HTTP: once, whatever dies in between, and only past what somebody accepts."""

from __future__ import annotations

import uuid
from typing import Any

from tests.durable.agent import Agent, ok, refused
from tests.durable.journals import call
from tests.durable.working import Client
from tests.web.house import House


def test_an_interrupted_turn_is_recovered_once(agent: Agent):
    agent.begin()
    other = agent.come_back()

    report = ok(other.recover())

    assert {name: report[name] for name in report if not name.startswith(("first", "last", "digest"))} == {
        "session_id": agent.id,
        "turn_id": agent.turn,
        "exact_results": 0,
        "uncertain_results": 0,
        "not_executed_results": 0,
        "interrupted_turn": True,
    }
    refused(other.recover(), "invalid", 400)


def test_a_started_call_is_passed_only_by_somebody_who_accepts_it(agent: Agent):
    exact, begun, idle = call(), call("deploy"), call()
    agent.begin()
    agent.plan(exact, begun, idle)
    agent.start(exact)
    agent.complete(exact)
    agent.start(begun)
    agent.ask(idle)
    other = agent.come_back()

    told = refused(other.recover(), "uncertain_calls")

    assert told["calls"] == [{"call_id": begun.id, "tool_name": "deploy"}]
    assert [each["state"] for each in other.journal()["batch"]["calls"]] == [
        "completed",
        "started",
        "planned",
    ]
    key = {"Idempotency-Key": str(uuid.uuid4())}
    report = ok(other.recover(accept=True, **key))
    assert (report["exact_results"], report["uncertain_results"], report["not_executed_results"]) == (1, 1, 1)
    assert report["interrupted_turn"] is False
    assert ok(other.recover(accept=True, **key)) == report, "sent again it is answered again"
    results = [e["payload"]["content"][0]["data"] for e in other.events() if e["kind"] == "tool_result"]
    assert results[0] == "3 passed"
    assert len(results) == 3


def test_a_recovery_that_was_cut_goes_on_without_being_accepted_again(agent: Agent):
    begun, idle = call(), call()
    agent.begin()
    agent.plan(begun, idle)
    agent.start(begun)
    cut = agent.come_back()
    # The process of the gate dies after the first of its commands.
    sent: list[object] = []
    submit = agent.house.parts.gate.submit

    def dies(command: object, *args: Any, **more: Any) -> Any:
        if sent:
            raise RuntimeError("killed")
        sent.append(command)
        return submit(command, *args, **more)

    agent.house.parts.gate.submit = dies  # type: ignore[method-assign]
    assert cut.recover(accept=True).status_code == 500
    agent.house.parts.gate.submit = submit  # type: ignore[method-assign]

    other = cut.come_back()
    report = ok(other.recover())

    assert (report["uncertain_results"], report["not_executed_results"]) == (1, 1)


def test_malformed_pending_recovery_fails_closed_and_releases_session(house: House, agent: Agent):
    agent.begin()
    agent.plan(call())
    other = agent.come_back()
    house.connection.raw.execute("UPDATE tool_batches SET audit_json = json_remove(audit_json, '$[0]')")

    told = refused(other.recover(accept=True), "corrupt")

    assert "changed or is damaged" in told["error"]
    assert house.rows("SELECT lease_hash FROM durable_sessions") == [{"lease_hash": None}]
    assert house.rows("SELECT * FROM session_events") == []
    assert Client(house, agent.id).claim().status_code == 200


def test_recovery_is_for_the_holder(agent: Agent):
    agent.begin()
    other = Agent(agent.house, agent.id)
    other.lease = "A" * 43
    refused(other.recover(accept=True), "stale_lease")
    assert agent.journal()["turn"] is not None

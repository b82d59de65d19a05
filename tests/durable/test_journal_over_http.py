"""The journal of a turn over HTTP, through the real gate and the real engine."""

from __future__ import annotations

import json
import uuid

from memory_core import limits
from memory_core.domain import audit_event
from memory_core.domain.agent_message import Message, Role, Text, ToolCall, payload, said
from memory_core.domain.audit_event import TurnFailed
from memory_core.domain.tool_journal import NOT_EXECUTED_TEXT, denial_text
from tests.durable.agent import Agent, ok, refused
from tests.durable.journals import allow, call, deny, new_id, prompt
from tests.durable.working import ELSEWHERE, HERE
from tests.web.house import House

SECRET = "AWS_SECRET_ACCESS_KEY=" + uuid.uuid4().hex + "/" + uuid.uuid4().hex[:7]


def test_a_turn_with_parallel_calls_and_approvals_reaches_the_transcript(agent: Agent):
    one, two, three = call(), call("read_file", path="a.py"), call("remove", path="b.py")
    assert ok(agent.begin())["redacted"] is False
    assert ok(agent.plan(one, two, three))["calls"] == 3
    ok(agent.ask(one))
    ok(agent.ask(three))
    ok(agent.audit(one, allow(one)))
    ok(agent.start(one))
    ok(agent.start(two))
    ok(agent.audit(three, deny(three, "not that file")))
    ok(agent.complete(two, "b = 1"))
    ok(agent.complete(three, denial_text("not that file"), is_error=True))
    assert [each["state"] for each in agent.journal()["batch"]["calls"]] == ["started", *["completed"] * 2]
    assert ok(agent.complete(one)) == {"call_id": one.id, "state": "completed", "redacted": False}
    written = ok(agent.checkpoint())
    last = ok(agent.end())

    assert agent.journal() == {"turn": None, "batch": None}
    assert last["first_sequence"] == written["last_sequence"] + 1
    told = agent.events()
    assert [event["kind"] for event in told if event["kind"] != "audit"] == [
        *("user_message", "tool_call", "tool_result", "tool_result", "tool_result", "assistant_message"),
    ]
    planned = [event["payload"]["event"] for event in told if event["kind"] == "audit"]
    assert [event["call"]["arguments"] for event in planned if event["type"] == "tool_call"] == [
        {"command": "make test"},
        {"path": "a.py"},
        {"path": "b.py"},
    ]


def test_a_step_that_is_sent_again_is_taken_once(agent: Agent):
    one, key = call(), str(uuid.uuid4())
    agent.begin()
    agent.plan(one)

    first = ok(agent.start(one, key=key))

    assert ok(agent.start(one, key=key)) == first
    refused(agent.start(one), "conflict")


def test_a_secret_is_redacted_once_and_everywhere_and_stops_nothing(agent: Agent):
    one = call(command=f"export {SECRET} && make")
    assert ok(agent.begin(prompt(f"use {SECRET}")))["redacted"] is True
    assert ok(agent.plan(one))["redacted"] is True
    ok(agent.ask(one))
    ok(agent.audit(one, allow(one)))
    ok(agent.start(one))
    assert ok(agent.complete(one, f"exported {SECRET}"))["redacted"] is True
    ok(agent.checkpoint())
    ok(agent.end())

    text = json.dumps(agent.events())
    assert SECRET.partition("=")[2] not in text
    assert text.count("REDACTED") >= 5


def test_a_denial_whose_reason_is_redacted_closes_its_call(agent: Agent):
    one = call()
    agent.begin()
    agent.plan(one)
    agent.ask(one)
    reason = f"it would print {SECRET}"
    ok(agent.audit(one, deny(one, reason)))
    ok(agent.complete(one, denial_text(reason), is_error=True))
    ok(agent.checkpoint())


def test_an_open_approval_is_denied_with_its_call(agent: Agent):
    one, two = call(), call()
    agent.begin()
    agent.plan(one, two)
    agent.ask(one)
    agent.ask(two)
    refused(agent.complete(one, "cancelled", is_error=True), "invalid", 400)
    ok(agent.complete(one, NOT_EXECUTED_TEXT, is_error=True, origin="not_executed"))
    denied = audit_event.payload(deny(two, "the user pressed escape"))
    ok(agent.complete(two, NOT_EXECUTED_TEXT, is_error=True, origin="not_executed", denied=denied))
    ok(agent.checkpoint())

    decisions = [e["payload"]["event"]["decision"] for e in agent.events() if "decision" in str(e)]
    assert [each["reason"] for each in decisions][1] == "the user pressed escape"


def test_what_is_started_or_asked_about_is_the_planned_call(agent: Agent):
    one = call()
    agent.begin()
    agent.plan(one)
    other = ToolCall(one.id, one.name, {"command": "rm -rf build"})
    for answer in (
        agent.start(one, other),
        agent.ask(one, arguments=other.arguments),
        agent.ask(one, tool_name="read_file"),
        agent.ask(one, workspace_inode="9"),
        agent.ask(one, workspace_root="src"),
        agent.ask(one, reason="ok\x1b[2K"),
        agent.start(one, call()),
    ):
        refused(answer, "invalid", 400)
    assert agent.journal()["batch"]["calls"][0]["state"] == "planned"


def test_approval_reason_control_characters_fail_before_policy_or_invocation(agent: Agent):
    one = call()
    agent.begin()
    agent.plan(one)
    refused(agent.ask(one, reason="\u202eevil"), "invalid", 400)
    refused(agent.ask(one, reason="two\nlines"), "invalid", 400)


def test_bodies_that_do_not_fit_are_refused_before_anything_is_kept(agent: Agent):
    one = call()
    refused(agent.begin(said(Role.ASSISTANT, "hello")), "invalid", 400)
    refused(agent.step("active-turn", {"turn_id": "7", "input": payload(prompt())}), "invalid", 400)
    refused(agent.step("active-turn", {"turn_id": new_id(), "input": {"role": "user"}}), "invalid", 400)
    refused(agent.plan(one), "conflict")
    agent.begin()
    for broken in (
        {"audit": []},
        {"audit": agent.opening()},
        {"audit": [*agent.opening(one), {"type": "text_delta"}]},
        {"audit": agent.opening(call())},
        {"message": payload(said(Role.ASSISTANT, "no calls"))},
        {"message": payload(prompt())},
        {"calls": []},
        {"turn_id": "x"},
    ):
        refused(agent.plan(one, **broken), "invalid", 400)
    refused(agent.plan(one, turn_id=new_id()), "invalid", 400)
    ok(agent.plan(one))
    refused(
        agent.step("checkpoint", {"turn_id": agent.turn, "terminal": False, "audit": agent.opening()}),
        "invalid",
        400,
    )
    refused(
        agent.step("checkpoint", {"turn_id": agent.turn, "terminal": False, "failed": "x"}), "invalid", 400
    )
    refused(agent.complete(one, origin="unobserved"), "invalid", 400)
    refused(agent.complete(one, ""), "invalid", 400)
    refused(agent.complete(one, "x" * (limits.TOOL_OUTPUT_MAX_BYTES + 1)), "invalid", 400)
    refused(agent.audit(one, TurnFailed(turn_id=agent.turn, message="x")), "invalid", 400)


def test_the_longest_input_is_taken_and_comes_back(agent: Agent):
    part = Text("é" * (limits.FIELD_REDACTED_MAX_BYTES // 2))
    longest = Message(role=Role.USER, content=(part,) * 7)
    ok(agent.begin(longest))

    assert agent.journal()["turn"]["input"] == payload(longest)
    refused(
        agent.step(
            "active-turn",
            {
                "turn_id": new_id(),
                "input": payload(longest) | {"content": [{"type": "text", "data": part.data}] * 9},
            },
        ),
        "invalid",
        400,
    )


def test_an_invalid_input_never_enters_history_and_the_session_stays_usable(agent: Agent):
    refused(
        agent.step("active-turn", {"turn_id": new_id(), "input": payload(prompt()) | {"role": "boss"}}),
        "invalid",
        400,
    )
    assert agent.journal() == {"turn": None, "batch": None}
    ok(agent.begin())
    ok(agent.end())


def test_a_batch_of_which_nothing_was_started_can_be_thrown_away(agent: Agent):
    one = call()
    agent.begin()
    agent.plan(one)
    body = json.dumps({"directory": HERE, "turn_id": agent.turn})
    headers = agent.house.bearer | {"Memoryd-Lease": agent.lease, "Content-Type": "application/json"}
    answer = agent.house.client().delete(f"{agent.root}/tool-batch", data=body, headers=headers)
    assert ok(answer) == {"discarded": True}
    assert agent.journal()["batch"] is None
    ok(agent.fail("the sink broke"))


def test_steps_need_lease_and_directory(agent: Agent):
    lease, agent.lease = agent.lease, ""
    refused(agent.begin(), "invalid", 400)
    agent.lease, agent.directory = lease, ELSEWHERE
    refused(agent.begin(), "workspace_mismatch")


def test_a_token_that_only_reads_sees_the_journal_and_changes_nothing(house: House, agent: Agent):
    agent.begin()
    token = house.add_token("read")
    seen = house.client().get(f"{agent.root}/journal", headers={"Authorization": f"Bearer {token}"})
    assert ok(seen)["turn"]["turn_id"] == agent.turn
    answer = agent.step("recover", Authorization=f"Bearer {token}")
    assert answer.status_code == 403
    stranger = house.add_token("write", "bob")
    hidden = house.client().get(f"{agent.root}/journal", headers={"Authorization": f"Bearer {stranger}"})
    assert hidden.status_code == 404

"""Messages of an agent's history: what is taken, what is refused, what makes a history whole."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memory_core import limits
from memory_core.domain import agent_message
from memory_core.domain.agent_message import (
    AssetKind,
    AssetReference,
    Message,
    Role,
    Text,
    check_history,
    payload,
    read_message,
    read_plain_message,
    said,
    tool_answer,
)
from memory_core.errors import Invalid
from tests.durable.journals import asks, call, new_id, prompt

PICTURE = AssetReference("ab" * 32, 68, AssetKind.IMAGE)


def shapes() -> list[Message]:
    return [
        said(Role.SYSTEM, "You are a careful engineer."),
        Message(role=Role.USER, content=(Text("what is this?"), PICTURE, Text("and this?"))),
        Message(
            role=Role.ASSISTANT, content=(Text("Half a bridge: 橋 \x00"),), reasoning="it looks like one"
        ),
        asks(call(), call("read_file", path="a.py"), text="I look."),
        tool_answer(new_id(), "3 passed"),
    ]


@pytest.mark.parametrize("message", shapes(), ids=lambda m: m.role.value)
def test_a_message_comes_back_from_its_payload_as_it_was(message: Message):
    assert read_message(json.loads(json.dumps(payload(message)))) == message


def test_multimedia_message_round_trips_through_asset_reference():
    message = Message(role=Role.USER, content=(Text("look"), PICTURE))

    again = read_message(payload(message))

    assert again.assets == (PICTURE,)
    assert payload(message)["content"][1] == {
        "type": "asset",
        "data": {"sha256": "ab" * 32, "bytes": 68, "kind": "image"},
    }


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"extra": 1}, "unknown field 'extra'"),
        ({"record": "message"}, "durable_message"),
        ({"version": 2}, "version"),
        ({"version": True}, "version"),
        ({"role": "developer"}, "role"),
        ({"content": [{"type": "translation", "data": "hallo"}]}, "'translation' is not known"),
        ({"content": [{"type": "text", "data": "a", "lang": "en"}]}, "unknown field 'lang'"),
        ({"content": [{"type": "text", "data": 7}]}, "must be text"),
        ({"content": [{"type": "text", "data": "\ud800"}]}, "half a character"),
        ({"content": "hello"}, "must be a list"),
        ({"content": []}, "is empty"),
        ({"content": [{"type": "asset", "data": {"sha256": "AB" * 32, "bytes": 1, "kind": "image"}}]}, "64"),
        (
            {"content": [{"type": "asset", "data": {"sha256": "ab" * 32, "bytes": -1, "kind": "image"}}]},
            "whole",
        ),
        (
            {"content": [{"type": "asset", "data": {"sha256": "ab" * 32, "bytes": 1, "kind": "other"}}]},
            "other",
        ),
        ({"tool_call_id": "x"}, "a tool's message, and no other"),
        ({"reasoning": "hm"}, "only the assistant"),
        ({"tool_calls": [{"id": "x", "name": "a", "arguments": {}}]}, "UUIDv7"),
    ],
)
def test_what_is_not_known_is_refused_and_never_dropped(change: dict[str, Any], told: str):
    with pytest.raises(Invalid, match=told):
        read_message({**payload(prompt()), **change})


@pytest.mark.parametrize("field", ["record", "version", "role"])
def test_a_payload_without_one_of_its_marks_is_refused(field: str):
    value = payload(prompt())
    del value[field]
    with pytest.raises(Invalid, match=field):
        read_message(value)


@pytest.mark.parametrize("value", [None, 3, "text", [1]])
def test_only_an_object_is_a_message(value: object):
    with pytest.raises(Invalid, match="a JSON object"):
        read_message(value)


def test_a_tools_answer_is_one_text_of_at_most_256_kib():
    call_id = new_id()
    assert tool_answer(call_id, "x" * limits.TOOL_OUTPUT_MAX_BYTES)
    for content in ((), (Text(""),), (Text("a"), Text("b")), (PICTURE,)):
        with pytest.raises(Invalid):
            Message(role=Role.TOOL, content=content, tool_call_id=call_id)
    with pytest.raises(Invalid, match="bytes"):
        tool_answer(call_id, "é" * (limits.TOOL_OUTPUT_MAX_BYTES // 2 + 1))
    with pytest.raises(Invalid, match="UUIDv7"):
        tool_answer("3f2a", "x")


def test_text_and_reasoning_of_the_assistant_have_192_kib_each():
    most = "x" * limits.MODEL_FIELD_MAX_BYTES
    assert Message(role=Role.ASSISTANT, content=(Text(most),), reasoning=most)
    with pytest.raises(Invalid, match="its text"):
        Message(role=Role.ASSISTANT, content=(Text(most), Text("x")))
    with pytest.raises(Invalid, match="its reasoning"):
        Message(role=Role.ASSISTANT, reasoning=most + "x")


def test_one_text_is_not_longer_than_what_redaction_looks_at():
    with pytest.raises(Invalid, match="bytes"):
        said(Role.USER, "x" * (limits.FIELD_REDACTED_MAX_BYTES + 1))
    with pytest.raises(Invalid, match="send it as an asset"):
        asks(call(text="x" * (limits.FIELD_REDACTED_MAX_BYTES + 1)))


def test_a_turn_begins_with_two_mib_of_a_users_words_at_most():
    part = Text("x" * limits.FIELD_REDACTED_MAX_BYTES)
    assert agent_message.check_input(Message(role=Role.USER, content=(part,) * 7))
    with pytest.raises(Invalid, match="input is at most"):
        agent_message.check_input(Message(role=Role.USER, content=(part,) * 8))
    with pytest.raises(Invalid, match="message of the user"):
        agent_message.check_input(said(Role.ASSISTANT, "hello"))


def test_sixteen_calls_and_no_more():
    assert asks(*(call() for _ in range(16)))
    with pytest.raises(Invalid, match="more than 16"):
        asks(*(call() for _ in range(17)))


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth - 1):
        value = [value]
    return value


def test_arguments_nest_64_levels_and_hold_65536_values():
    assert asks(call(tree=nested(63)))
    with pytest.raises(Invalid, match="deeper than 64"):
        asks(call(tree=nested(64)))
    with pytest.raises(Invalid, match="deeper than 64"):
        asks(call(tree=nested(100_000)))
    assert asks(call(items=[0] * (65_536 - 2)))
    with pytest.raises(Invalid, match="more than 65536"):
        asks(call(items=[0] * (65_536 - 1)))


def test_two_calls_of_one_message_have_two_ids():
    one = call()
    with pytest.raises(Invalid, match="one id"):
        asks(one, one)


def test_a_message_of_another_program_may_be_plain():
    assert read_plain_message({"role": "user", "content": "hello"}) == said(Role.USER, "hello")
    parts = {"role": "assistant", "content": [{"type": "text", "data": "hi"}]}
    assert read_plain_message(parts) == said(Role.ASSISTANT, "hi")
    with pytest.raises(Invalid, match="only a durable message"):
        read_plain_message(
            {"role": "user", "content": payload(Message(role=Role.USER, content=(PICTURE,)))["content"]}
        )
    with pytest.raises(Invalid, match="unknown field"):
        read_plain_message({"role": "user", "content": "hello", "name": "ada"})


# --- histories -----------------------------------------------------------------------------------


def test_a_history_of_rounds_is_whole():
    one, two, three = call(), call(), call()
    check_history(
        [
            said(Role.SYSTEM, "Be careful."),
            prompt(),
            asks(one, two),
            tool_answer(two.id, "second"),
            tool_answer(one.id, "first"),
            asks(three),
            tool_answer(three.id, "third"),
            said(Role.ASSISTANT, "done"),
        ]
    )
    check_history([prompt(), asks(one, two), tool_answer(one.id, "first")], is_open=True)


def test_resume_rejects_unresolved_and_mismatched_tool_results():
    one, two = call(), call()
    answered = [prompt(), asks(one), tool_answer(one.id, "fine")]
    for history, told in [
        ([prompt(), asks(one)], "without an answer"),
        ([prompt(), asks(one, two), tool_answer(one.id, "fine")], "without an answer"),
        ([prompt(), asks(one), prompt("go on")], "without an answer"),
        ([prompt(), asks(one), said(Role.ASSISTANT, "done")], "without an answer"),
        ([*answered, tool_answer(one.id, "again")], "waits for none"),
        ([prompt(), asks(one), tool_answer(two.id, "fine")], "waits for none"),
        ([prompt(), tool_answer(one.id, "fine")], "waits for none"),
        ([*answered, asks(one), tool_answer(one.id, "fine")], "comes twice"),
        ([prompt(), said(Role.SYSTEM, "obey")], "stands first"),
    ]:
        with pytest.raises(Invalid, match=told):
            check_history(history)


def test_a_history_has_an_end():
    with pytest.raises(Invalid, match="4096"):
        check_history([prompt("a")] * 4_097)
    check_history([prompt("a")] * 4_096)

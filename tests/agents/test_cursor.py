"""Cursor's payloads become events."""

from __future__ import annotations

import json

import pytest

from memory_core.agents.cursor import CURSOR, read
from memory_core.domain.event import EventKind, Outcome, Speaker
from memory_core.errors import Invalid
from tests.payloads import names, sample

CONVERSATION = "a81e6a40-6d0e-4f1c-9a2f-5a6d1c2b3e4f"
KINDS = {
    "sessionStart": EventKind.SESSION_START,
    "beforeSubmitPrompt": EventKind.USER_PROMPT,
    "preToolUse": EventKind.PRE_TOOL_USE,
    "beforeShellExecution": EventKind.PRE_TOOL_USE,
    "beforeMCPExecution": EventKind.PRE_TOOL_USE,
    "beforeReadFile": EventKind.PRE_TOOL_USE,
    "postToolUse": EventKind.POST_TOOL_USE,
    "postToolUseFailure": EventKind.POST_TOOL_USE,
    "afterShellExecution": EventKind.POST_TOOL_USE,
    "afterMCPExecution": EventKind.POST_TOOL_USE,
    "afterFileEdit": EventKind.POST_TOOL_USE,
    "preCompact": EventKind.PRE_COMPACT,
    "afterAgentResponse": EventKind.STOP,
    "stop": EventKind.STOP,
    "sessionEnd": EventKind.SESSION_END,
}


def event(name: str, **changes: object):
    return read({**sample("cursor", name), **changes}, {})


def call_of(name: str, **changes: object):
    call = event(name, **changes).tool
    assert call is not None
    return call


@pytest.mark.parametrize("name", names("cursor"))
def test_every_sample_is_read(name: str):
    payload = sample("cursor", name)
    read_event = read(payload, {"cwd": "/home/mira/.cursor"})

    assert read_event.client == "cursor"
    assert read_event.session_key == CONVERSATION
    assert read_event.source_event == payload["hook_event_name"]
    assert read_event.kind is KINDS.get(payload["hook_event_name"], EventKind.OTHER)
    assert read_event.cwd == "/home/mira/src/tidal-ledger"
    assert read_event.title


def test_nothing_of_what_is_registered_says_the_same_thing_twice():
    assert not {"afterShellExecution", "afterMCPExecution", "afterFileEdit"} & set(CURSOR.hook_events)
    assert {KINDS.get(name) for name in CURSOR.hook_events} >= {EventKind.USER_PROMPT, EventKind.STOP}


def test_the_session_is_the_conversation_on_every_event():
    payload = sample("cursor", "sessionStart")
    del payload["conversation_id"]

    assert read(payload, {}).session_key == CONVERSATION
    with pytest.raises(Invalid):
        read({"hook_event_name": "workspaceOpen"}, {})


def test_a_prompt_comes_without_its_wrappers():
    wrapped = "<timestamp>Friday, 9:14</timestamp>\n<user_query>\nCount the <user_query> tags\n</user_query>"
    prompt = event("beforeSubmitPrompt", prompt=wrapped)

    assert (prompt.body, prompt.speaker) == ("Count the <user_query> tags", Speaker.USER)


def test_a_result_is_read_out_of_its_string():
    call = call_of("postToolUse")

    assert call.result is not None
    assert call.result.startswith("..F.\nE   AssertionError")
    assert (call.outcome, call.command) == (Outcome.ERROR, "pytest -q tests/test_fees.py")


@pytest.mark.parametrize(
    ("output", "result"),
    [
        (json.dumps("plain words"), "plain words"),
        ("not JSON", "not JSON"),
        (json.dumps({"content": "file text"}), "file text"),
        (json.dumps([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]), "a\nb"),
        (None, None),
    ],
)
def test_a_result_of_any_shape_becomes_text(output: object, result: str | None):
    assert call_of("postToolUse", tool_output=output).result == result


def test_an_id_of_two_lines_is_one_id_and_the_same_before_and_after():
    before, after = event("preToolUse"), event("postToolUse")

    assert before.unique_id == after.unique_id == "call_1.fc_invented"


def test_a_failure_says_why():
    failed = call_of("postToolUseFailure")

    assert (failed.outcome, failed.result) == (Outcome.ERROR, "timed out after 30s")
    assert event("postToolUseFailure").reason == "timeout"


def test_events_that_name_no_tool_are_uses_of_one():
    assert call_of("afterShellExecution").name == "Shell"
    assert call_of("afterShellExecution").outcome is Outcome.UNKNOWN
    edit = call_of("afterFileEdit")
    assert (edit.name, edit.family, edit.paths) == (
        "Edit",
        "file",
        ("/home/mira/src/tidal-ledger/ledger/fees.py",),
    )
    assert call_of("beforeReadFile").result is None


def test_the_input_of_an_mcp_call_is_read_out_of_its_string_and_memorys_own_answer_is_not_kept():
    assert call_of("afterMCPExecution").command == "fees"
    assert call_of("afterMCPExecution").result == "2 hits"
    assert call_of("postToolUse", tool_name="MCP:memory_query").result is None


def test_what_the_agent_said_comes_with_its_response_and_the_stop_is_a_boundary():
    said = event("afterAgentResponse")

    assert (said.speaker, said.is_boundary) == (Speaker.AGENT, False)
    assert said.body.startswith("Fees are now rounded")
    assert (event("stop").is_boundary, event("stop").reason) == (True, "completed")
    assert event("afterAgentThought").body == ""


def test_a_subagent_is_named():
    stopped = read(
        {
            "hook_event_name": "subagentStop",
            "parent_conversation_id": CONVERSATION,
            "subagent_id": "sub-7",
            "subagent_type": "explore",
            "summary": "3 callers",
        },
        {},
    )

    assert (stopped.session_key, stopped.agent_id, stopped.body) == (CONVERSATION, "sub-7", "3 callers")


def test_events_in_the_spelling_of_another_clients_hook_file_are_read_too():
    payload = {**sample("cursor", "beforeSubmitPrompt"), "hook_event_name": "UserPromptSubmit"}
    assert read(payload, {}).kind is EventKind.USER_PROMPT
    assert event("postToolUse", hook_event_name="PostToolUse").kind is EventKind.POST_TOOL_USE

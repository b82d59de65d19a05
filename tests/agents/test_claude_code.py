"""Claude Code's payloads become events."""

from __future__ import annotations

import json

import pytest

from memory_core.agents import client_named
from memory_core.agents.claude_code import read
from memory_core.domain.event import EventKind, Outcome, Speaker
from memory_core.domain.recalled import fence
from memory_core.errors import Invalid
from tests.payloads import HUGE, names, sample

SESSION = "7b0f4e52-3c1d-4a6e-9b8f-2d5a1c9e7f10"

KINDS = {
    "SessionStart": EventKind.SESSION_START,
    "UserPromptSubmit": EventKind.USER_PROMPT,
    "PreToolUse": EventKind.PRE_TOOL_USE,
    "PostToolUse": EventKind.POST_TOOL_USE,
    "PostToolUseFailure": EventKind.POST_TOOL_USE,
    "PreCompact": EventKind.PRE_COMPACT,
    "PostCompact": EventKind.POST_COMPACTION,
    "Notification": EventKind.NOTIFICATION,
    "Stop": EventKind.STOP,
    "SessionEnd": EventKind.SESSION_END,
}

#: Events that have no sample: from the vendor's table of fields.
DOCUMENTED = {
    "Setup": {"trigger": "init"},
    "UserPromptExpansion": {"expansion_type": "command", "command_name": "review", "prompt": "review this"},
    "PostToolBatch": {
        "tool_calls": [{"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "t1"}]
    },
    "StopFailure": {"error": "rate_limit", "error_details": "429", "last_assistant_message": "so far"},
    "CwdChanged": {"new_cwd": "/home/mira/src"},
    "DirectoryAdded": {"path": "/home/mira/other"},
    "WorktreeCreate": {"name": "fees"},
    "WorktreeRemove": {"path": "/home/mira/wt"},
}


def event(name: str, **changes: object):
    return read({**sample("claude-code", name), **changes}, {})


@pytest.mark.parametrize("name", names("claude-code"))
def test_every_sample_is_read(name: str):
    payload = sample("claude-code", name)
    read_event = read(payload, {})

    assert read_event.client == "claude-code"
    assert read_event.session_key == SESSION
    assert read_event.source_event == payload["hook_event_name"]
    assert read_event.kind is KINDS.get(payload["hook_event_name"], EventKind.OTHER)
    assert read_event.cwd == "/home/mira/src/tidal-ledger"
    assert read_event.title
    read_event.body.encode()


@pytest.mark.parametrize("name", DOCUMENTED)
def test_events_without_a_sample_are_read_too(name: str):
    read_event = read({"session_id": "s", "hook_event_name": name, **DOCUMENTED[name]}, {})

    assert read_event.source_event == name
    assert read_event.title


def test_the_tools_of_a_batch_are_named():
    assert (
        read({"session_id": "s", "hook_event_name": "PostToolBatch", **DOCUMENTED["PostToolBatch"]}, {}).body
        == "Bash: ls"
    )


def test_a_prompt_is_the_users_and_carries_the_prompt_id():
    prompt = event("UserPromptSubmit")

    assert prompt.speaker is Speaker.USER
    assert prompt.body.startswith("Fix the rounding bug")
    assert prompt.body.endswith("🙏")
    assert prompt.unique_id == "0198c7a2-5d1e-7c3b-9f40-000000000011"


def test_a_stop_says_what_the_agent_said_and_claims_no_unique_id():
    stop = event("Stop")

    assert stop.speaker is Speaker.AGENT
    assert stop.body.startswith("Fees are now rounded half-even")
    assert stop.unique_id is None  # its prompt id is that of every event since the prompt
    assert not stop.is_boundary


def test_a_failed_stop_keeps_its_reason_and_its_text():
    stop = read({"session_id": "s", "hook_event_name": "StopFailure", **DOCUMENTED["StopFailure"]}, {})

    assert (stop.kind, stop.reason, stop.body) == (EventKind.STOP, "rate_limit", "so far")


def test_a_shell_call_fills_the_tool_call():
    call = event("PostToolUse").tool

    assert call is not None
    assert (call.name, call.family, call.call_id) == ("Bash", "non-file", "toolu_01Qz9invented001")
    assert call.command == "pytest -q tests/test_fees.py"
    assert call.outcome is Outcome.SUCCESS
    assert call.result is not None
    assert call.result.startswith("..F.\nE   AssertionError")


def test_an_edit_names_its_file():
    call = event("PostToolUse.Edit").tool

    assert call is not None
    assert call.paths == ("/home/mira/src/tidal-ledger/ledger/fees.py",)
    assert call.family == "file"


@pytest.mark.parametrize(
    ("response", "text"),
    [
        ("plain", "plain"),
        ({"stdout": "out", "stderr": "err"}, "out\nerr"),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb"),
        ({"content": [{"type": "text", "text": "a"}]}, "a"),
        (json.dumps({"output": "inner", "metadata": {"exit_code": 0}}), "inner"),
        (json.dumps([{"type": "text", "text": "block"}]), "block"),
        ('{"name": "left-pad",\n "text": 1}', '{"name": "left-pad",\n "text": 1}'),
        ({"file": {"content": HUGE}}, HUGE),
        (None, None),
    ],
)
def test_a_result_of_any_shape_becomes_text(response: object, text: str | None):
    call = event("PostToolUse", tool_response=response).tool

    assert call is not None
    assert call.result == text


@pytest.mark.parametrize(
    ("response", "outcome"),
    [
        ({"success": False}, Outcome.ERROR),
        ({"is_error": True, "content": "no"}, Outcome.ERROR),
        ({"stdout": "", "interrupted": True}, Outcome.ERROR),
        (json.dumps({"output": "x", "metadata": {"exit_code": 2}}), Outcome.ERROR),
        ("fine", Outcome.SUCCESS),
    ],
)
def test_a_result_tells_the_outcome(response: object, outcome: Outcome):
    call = event("PostToolUse", tool_response=response).tool

    assert call is not None
    assert call.outcome is outcome


def test_a_failure_is_an_error_with_its_message():
    failure = event("PostToolUseFailure")

    assert failure.kind is EventKind.POST_TOOL_USE
    assert failure.tool is not None
    assert failure.tool.outcome is Outcome.ERROR
    assert "No rule to make target" in (failure.tool.result or "")


def test_events_of_a_subagent_say_which():
    assert event("SubagentStop").agent_id == "a4f1c09de"
    assert event("SubagentStop").body == "3 callers found."
    assert event("PostToolUse.huge").agent_type == "Explore"


def test_a_compaction_carries_its_summary():
    assert event("PostCompact").body.startswith("User is fixing sub-cent")


def test_recalled_text_is_not_captured_back():
    shown = fence("we deploy on Fridays", "page deploy.md")

    assert event("UserPromptSubmit", prompt=f"{shown}go on").body == "go on"
    assert event("Stop", last_assistant_message=f"as noted: {shown}").body == "as noted: "
    assert event("PostToolUse", tool_response={"stdout": shown + "done"}).tool.result == "done"


def test_what_memory_itself_answered_is_no_result():
    answered = event(
        "PostToolUse",
        tool_name="mcp__memoryd__memory_query",
        tool_response="a page",
        tool_input={"query": "fees"},
    )

    assert answered.tool is not None
    assert answered.tool.result is None
    assert answered.tool.command == "fees"


def test_wrappers_are_taken_off_at_the_beginning_only():
    wrapped = "<timestamp>Mon</timestamp>\n<user_query>\nfix it\n</user_query>"

    assert event("UserPromptSubmit", prompt=wrapped).body == "fix it"
    assert (
        event("UserPromptSubmit", prompt="show <timestamp>1</timestamp>").body
        == "show <timestamp>1</timestamp>"
    )
    assert event("UserPromptSubmit", prompt='{"text": "as typed"}').body == '{"text": "as typed"}'


def test_text_that_cannot_be_stored_is_replaced():
    assert event("UserPromptSubmit", prompt="bad \ud83d end \x00 nul").body == "bad � end � nul"


def test_a_very_deep_result_is_read_without_an_error():
    deep: object = "x"
    for _ in range(500):
        deep = [deep]

    assert event("PostToolUse", tool_response=deep).tool.result == "…"


def test_the_body_wins_over_the_url_and_the_url_helps_out():
    assert read({"hook_event_name": "Stop"}, {"session_id": "q", "cwd": "/q"}).session_key == "q"
    assert (
        read({"session_id": "b", "cwd": "/b"}, {"session_id": "q", "cwd": "/q", "event": "Stop"}).cwd == "/b"
    )
    assert read({"session_id": "b"}, {"event": "post-tool-use"}).kind is EventKind.POST_TOOL_USE


def test_the_url_carries_the_time_of_the_shim():
    assert (
        read({"session_id": "b"}, {"event": "Stop", "occurred_at": "1780000000123"}).occurred_at
        == 1_780_000_000_123_000
    )


@pytest.mark.parametrize(
    "payload", [{"hook_event_name": "Stop", "cwd": None}, {"session_id": " "}, [1, 2, 3], "x", None]
)
def test_a_payload_without_a_session_is_invalid(payload):
    with pytest.raises(Invalid):
        read(payload, {})


def test_the_client_is_found_by_any_of_its_names():
    assert {client_named(name).name for name in ("claude", "Claude_Code", "claude-code")} == {"claude-code"}
    assert client_named("nobody") is None

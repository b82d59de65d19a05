"""Gemini CLI's payloads become events."""

from __future__ import annotations

import pytest

from memory_core.agents import client_named
from memory_core.agents.gemini_cli import GEMINI_CLI, read
from memory_core.domain.event import EventKind, Outcome, Speaker
from memory_core.errors import Invalid
from tests.payloads import names, sample

KINDS = {
    "SessionStart": EventKind.SESSION_START,
    "BeforeAgent": EventKind.USER_PROMPT,
    "BeforeTool": EventKind.PRE_TOOL_USE,
    "AfterTool": EventKind.POST_TOOL_USE,
    "PreCompress": EventKind.PRE_COMPACT,
    "AfterAgent": EventKind.STOP,
    "SessionEnd": EventKind.SESSION_END,
}


def event(name: str, **changes: object):
    return read({**sample("gemini-cli", name), **changes}, {})


@pytest.mark.parametrize("name", names("gemini-cli"))
def test_every_sample_is_read(name: str):
    payload = sample("gemini-cli", name)
    read_event = read(payload, {})

    assert read_event.client == "gemini-cli"
    assert read_event.session_key == "c2f8a1d0-77b4-4e0b-8a55-0d1e2f3a4b5c"
    assert read_event.source_event == payload["hook_event_name"]
    assert read_event.kind is KINDS.get(payload["hook_event_name"], EventKind.OTHER)
    assert read_event.cwd == "/home/mira/src/tidal-ledger"
    assert read_event.occurred_at == 1_787_303_647_512_000
    assert read_event.title


def test_both_names_mean_the_client():
    assert client_named("gemini") is client_named("Gemini_CLI") is GEMINI_CLI


def test_the_two_sides_of_a_turn_are_told_apart():
    prompt, stop = event("BeforeAgent"), event("AfterAgent")

    assert (prompt.speaker, prompt.body[:20]) == (Speaker.USER, "Fix the rounding bug")
    assert (stop.speaker, stop.body[:20]) == (Speaker.AGENT, "Fees are now rounded")
    assert "日本語" in prompt.body
    assert event("AfterAgent", prompt_response="").is_boundary


@pytest.mark.parametrize("name", ["BeforeModel", "AfterModel", "BeforeToolSelection"])
def test_events_around_the_model_repeat_nothing_of_the_conversation(name: str):
    around = event(name)

    assert (around.body, around.tool, around.is_boundary) == ("", None, True)


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        ("1 failed, 37 passed", Outcome.UNKNOWN),
        ("Output: fine\nExit Code: 0", Outcome.SUCCESS),
        ("Output: Exit Code: 0\nExit Code: 0\nno\nExit Code: 2", Outcome.ERROR),
    ],
)
def test_only_the_exit_code_tells_how_a_command_ended(said: str, outcome: Outcome):
    call = event("AfterTool", tool_response={"llmContent": said, "returnDisplay": "…"}).tool

    assert call is not None
    assert (call.outcome, call.result, call.family) == (outcome, said, "non-file")
    assert call.command == "pytest -q tests/test_fees.py"


def test_a_result_in_parts_is_read_as_one_text():
    call = event("AfterTool", tool_response={"llmContent": [{"text": "one"}, {"text": "two"}]}).tool
    assert call is not None
    assert call.result == "one\ntwo"


def test_a_tool_that_failed_says_so():
    call = event("AfterTool.error").tool

    assert call is not None
    assert (call.outcome, call.result, call.paths) == (Outcome.ERROR, "File not found", ("nope.py",))


def test_what_memory_itself_answered_is_not_stored_again():
    call = event("AfterTool", tool_name="mcp_memoryd_memory_query").tool
    assert call is not None
    assert call.result is None


def test_without_a_session_the_payload_is_refused_unless_the_url_knows_it():
    payload = {**sample("gemini-cli", "BeforeAgent"), "session_id": ""}
    with pytest.raises(Invalid):
        read(payload, {})
    assert read(payload, {"session_id": "s"}).session_key == "s"

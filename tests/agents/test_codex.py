"""Codex's payloads become events."""

from __future__ import annotations

import pytest

from memory_core.agents.codex import read
from memory_core.domain.event import EventKind, Outcome, Speaker
from tests.payloads import names, sample

KINDS = {
    "SessionStart": EventKind.SESSION_START,
    "UserPromptSubmit": EventKind.USER_PROMPT,
    "PreToolUse": EventKind.PRE_TOOL_USE,
    "PostToolUse": EventKind.POST_TOOL_USE,
    "PreCompact": EventKind.PRE_COMPACT,
    "PostCompact": EventKind.POST_COMPACTION,
    "Stop": EventKind.STOP,
    "Interrupt": EventKind.STOP,
    "SessionEnd": EventKind.SESSION_END,
}


def event(name: str, **changes: object):
    return read({**sample("codex", name), **changes}, {})


@pytest.mark.parametrize("name", names("codex"))
def test_every_sample_is_read(name: str):
    payload = sample("codex", name)
    read_event = read(payload, {})

    assert read_event.client == "codex"
    assert read_event.session_key == "0198c7a2-5d1e-7c3b-9f40-000000c0de01"
    assert read_event.source_event == payload["hook_event_name"]
    assert read_event.kind is KINDS.get(payload["hook_event_name"], EventKind.OTHER)
    assert read_event.title


def test_a_prompt_has_no_unique_id_because_a_turn_may_take_several():
    prompt = event("UserPromptSubmit")

    assert (prompt.speaker, prompt.unique_id) == (Speaker.USER, None)


def test_a_stop_says_what_the_agent_said():
    assert event("Stop").body.startswith("Fees are now rounded")
    assert event("Stop", last_assistant_message=None).is_boundary


def test_a_plain_result_does_not_tell_how_the_command_ended():
    call = event("PostToolUse").tool

    assert call is not None
    assert call.outcome is Outcome.UNKNOWN
    assert call.call_id == "call_Hn2invented01"


@pytest.mark.parametrize(
    ("response", "outcome"),
    [
        ("Exit code: 0\nWall time: 1 s\nOutput:\nfine", Outcome.SUCCESS),
        ("Process exited with code 2\nno", Outcome.ERROR),
        ({"output": "x", "metadata": {"exit_code": 1}}, Outcome.ERROR),
    ],
)
def test_an_exit_code_does(response: object, outcome: Outcome):
    assert event("PostToolUse", tool_response=response).tool.outcome is outcome


def test_a_patch_names_its_files_and_is_no_command():
    call = event("PreToolUse.apply_patch").tool

    assert call is not None
    assert (call.paths, call.command, call.family) == (("ledger/fees.py",), None, "file")


def test_an_interrupt_is_a_stop_without_text():
    interrupt = event("Interrupt")

    assert (interrupt.kind, interrupt.reason, interrupt.is_boundary) == (EventKind.STOP, "interrupt", True)


def test_subagents_are_told_apart():
    assert event("SubagentStop").agent_type == "explorer"
    assert event("SubagentStop").body == "3 callers."


def test_what_codex_says_in_the_users_place_is_no_prompt():
    assert event("UserPromptSubmit", prompt="# AGENTS.md instructions for /src\n…").kind is EventKind.OTHER

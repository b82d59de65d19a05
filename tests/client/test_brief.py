"""A session that is briefed at its start still gets a handoff that comes later."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memory_core.domain.recalled import fence
from tests.client.gate_server import Gate
from tests.client.test_hook import Machine
from tests.payloads import sample


@pytest.fixture
def briefed(home: Path, gate: Gate) -> Iterator[Machine]:
    machine = Machine(home)
    machine.connect(gate.url)
    (home / ".memoryd.toml").write_text('workspace = "default"\n[briefing]\ninject_on_session_start = true\n')
    yield machine
    machine.stop_drain()


def hook(machine: Machine, home: Path, event: str) -> str:
    payload: dict[str, Any] = {**sample("claude-code", event), "cwd": str(home)}
    done = machine.hook("claude-code", event, payload)
    return json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"] if done.stdout else ""


def test_the_brief_comes_at_the_start_and_the_handoff_that_came_later_with_the_first_prompt(
    briefed: Machine, home: Path, gate: Gate
):
    gate.handoff = fence("Rules.", "brief of default/shop, 2031-05-01T12:00:00Z")
    assert "Rules." in hook(briefed, home, "SessionStart")
    gate.handoff = "📥 Pending handoff\n\n" + fence("Fees are half done.", "handoff, codex")
    assert "half done" in hook(briefed, home, "UserPromptSubmit")
    assert hook(briefed, home, "UserPromptSubmit") == ""
    assert [asked.get("briefing") for asked in gate.handoffs_asked] == ["1", None]


def test_a_handoff_with_a_brief_behind_it_is_all_there_is(briefed: Machine, home: Path, gate: Gate):
    gate.handoff = (
        "📥 Pending handoff\n\n" + fence("Fees.", "handoff, codex") + fence("Rules.", "brief of default/shop")
    )
    assert "Rules." in hook(briefed, home, "SessionStart")
    assert hook(briefed, home, "UserPromptSubmit") == ""
    assert len(gate.handoffs_asked) == 1


def test_knowledge_is_asked_for_at_the_start_within_what_the_directory_allows(
    briefed: Machine, home: Path, gate: Gate
):
    (home / ".memoryd.toml").write_text(
        'workspace = "default"\n[memory]\nrecall_entries = 2\nconfidence_threshold = 0.9\n'
    )
    gate.handoff = fence("[]", "knowledge of default/shop, 2031-05-01T12:00:00Z")
    assert "[]" in hook(briefed, home, "SessionStart")
    gate.handoff = "📥 Pending handoff\n\n" + fence("Fees are half done.", "handoff, codex")
    assert "half done" in hook(briefed, home, "UserPromptSubmit")
    names = ("recall", "recall_entries", "recall_confidence", "recall_bytes")
    assert [[asked.get(name) for name in names] for asked in gate.handoffs_asked] == [
        ["1", "2", "0.9", None],
        [None, None, None, None],
    ]

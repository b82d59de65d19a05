"""The shim keeps to a directory's marker, and to one hook per event where a host loads another's hooks."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest

from client import detached, hook
from client.installers import Place
from client.marker import NAME
from client.spool import Entry, Spool
from memory_core.domain.capture_policy import PROTOCOL_FIELD
from tests.client.gate_server import query_of
from tests.client.installing import install
from tests.payloads import sample

Run = Callable[..., tuple[bytes, list[Entry]]]


@pytest.fixture
def run(home: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the shim in this process: what it prints, and what is in the spool then."""
    monkeypatch.setattr(detached, "start", lambda _settings: False)
    for variable in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "MEMORYD_CLIENT_CONFIG", "CURSOR_VERSION"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("MEMORYD_URL", "http://127.0.0.1:9")
    spool = Spool(str(home / ".local/state/memoryd/spool"))

    def run(payload: dict[str, Any], *arguments: str) -> tuple[bytes, list[Entry]]:
        out = TextIOWrapper(BytesIO())
        monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(json.dumps(payload).encode())))
        monkeypatch.setattr(sys, "stdout", out)
        assert hook.main([*arguments]) == 0
        return out.buffer.getvalue(), [e for name in spool.names() if (e := spool.read(name)) is not None]

    return run


@pytest.fixture
def work(home: Path) -> Path:
    (home / "work").mkdir()
    (home / "work" / NAME).write_text(
        'workspace = "acme"\nproject = "ledger"\ndrop_subagent_captures = true\n'
        '[capture]\nignore_paths = ["secrets/**"]\n'
    )
    return home / "work"


def read(path: str, work: Path) -> dict[str, Any]:
    arguments = {"tool_name": "Read", "tool_input": {"file_path": path}, "cwd": str(work)}
    return {**sample("claude-code", "PostToolUse"), **arguments}


def test_what_the_marker_says_travels_with_the_event(run: Run, work: Path):
    _, (entry,) = run({**sample("claude-code", "Stop"), "cwd": str(work)}, "claude-code", "Stop")
    told = query_of(entry.url)

    assert (told["workspace"], told["project"], told["drop_subagent"]) == ("acme", "ledger", "1")
    assert "project_strategy" not in told


def test_a_use_of_an_ignored_file_is_not_even_spooled(run: Run, work: Path):
    printed, entries = run(read("secrets/key.pem", work), "claude-code", "PostToolUse")
    assert (printed, entries) == (b"", [])

    link = work.parent / "by another name"
    link.symlink_to(work)
    assert run(read(f"{work}/secrets/x", link), "claude-code", "PostToolUse")[1] == []

    _, (entry,) = run(read("src/app.py", work), "claude-code", "PostToolUse")
    assert entry.body[PROTOCOL_FIELD]["disposition"] == "keep"


def test_a_marker_that_cannot_be_read_leaves_no_text_of_a_file(
    run: Run, work: Path, capfd: pytest.CaptureFixture[str]
):
    (work / NAME).write_text("a = = 1")
    _, (entry,) = run(read("src/app.py", work), "claude-code", "PostToolUse")

    assert "tool_response" not in entry.body
    assert entry.body["tool_name"] == "Read"
    assert "cannot be read" in capfd.readouterr().err


def test_a_policy_can_be_tried_without_keeping_anything(run: Run, work: Path):
    printed, entries = run(read("secrets/key.pem", work), "--check-capture")
    told = json.loads(printed)

    assert (told["disposition"], told["path_count"], told["marker"]) == ("drop", 1, str(work / NAME))
    assert entries == []


def test_a_host_that_loads_another_clients_hooks_sends_each_event_once(
    run: Run, place: Place, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("CURSOR_VERSION", "3.4.1")
    install(place, "claude-code")
    _, (alone,) = run(sample("cursor", "postToolUse"), "claude-code", "PostToolUse")
    assert (query_of(alone.url)["agent"], query_of(alone.url)["source"]) == ("cursor", "claude-code-hooks")

    install(place, "cursor")
    _, entries = run(sample("cursor", "postToolUse"), "claude-code", "PostToolUse")
    assert len(entries) == 1
    _, entries = run(sample("cursor", "postToolUse"), "cursor", "postToolUse")
    assert len(entries) == 2

"""From the installed configuration file to the server: the command that stands there is what is run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from client.spool import Spool
from memory_core.agents.claude_code import CLAUDE_CODE
from memory_core.agents.codex import CODEX
from memory_core.agents.cursor import CURSOR
from memory_core.agents.gemini_cli import GEMINI_CLI
from tests.client.gate_server import Gate, key_of, query_of
from tests.payloads import sample, stripe_key

ROOT = Path(__file__).parents[2]
DIRECTORIES = ("ada lovelace", "it's here", "Проект № 1", "a&b;c $HOME `x` (1)", 'tab\there "q"')


@pytest.fixture(params=DIRECTORIES)
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A home directory with each of the names that break careless installers."""
    home = tmp_path / request.param
    home.mkdir()
    return home


def memoryd(home: Path, command: str, *arguments: str, code: int = 0) -> str:
    run = f"import sys; from client.commands import {command} as c; c.command(sys.argv[1:])"
    environ = {"HOME": str(home), "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", run, *arguments], env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


@pytest.fixture
def installed(home: Path, gate: Gate) -> Iterator[Path]:
    token_file = home / ".local/share/memoryd/data/token"
    token_file.parent.mkdir(parents=True)
    token_file.write_text("of-the-test\n")
    memoryd(home, "install_hooks", "--apply", "--url", gate.url)
    yield home
    deadline = time.monotonic() + 20
    while Spool(str(home / ".local/state/memoryd/spool")).names():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def run_claude_hook(home: Path, event: str, payload: object) -> bytes:
    """As Claude Code does it: exec form, no shell."""
    config = json.loads((home / ".claude/settings.json").read_text("utf-8"))
    handler = config["hooks"][event][0]["hooks"][0]
    done = subprocess.run(
        [handler["command"], *handler["args"]],
        input=json.dumps(payload).encode(),
        env={},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_codex_hook(home: Path, event: str, payload: object) -> bytes:
    config = json.loads((home / ".codex/hooks.json").read_text("utf-8"))
    return run_line(config["hooks"][event][0]["hooks"][0]["command"], payload)


def run_gemini_hook(home: Path, event: str, payload: object) -> bytes:
    config = json.loads((home / ".gemini/settings.json").read_text("utf-8"))
    return run_line(config["hooks"][event][0]["hooks"][0]["command"], payload)


def run_cursor_hook(home: Path, event: str, payload: object) -> bytes:
    config = json.loads((home / ".cursor/hooks.json").read_text("utf-8"))
    return run_line(config["hooks"][event][0]["command"], payload)


def run_line(command: str, payload: object) -> bytes:
    """As these clients do it: a command line for the shell."""
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        input=json.dumps(payload).encode(),
        env={},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_stands_in_the_configuration_brings_a_session_to_the_server(installed: Path, gate: Gate):
    gate.handoff = "Fees are half done."
    shown = [
        run_claude_hook(installed, "SessionStart", sample("claude-code", "SessionStart")),
        run_codex_hook(installed, "SessionStart", sample("codex", "SessionStart")),
    ]
    key = stripe_key()
    run_claude_hook(installed, "PostToolUse", sample("claude-code", "PostToolUse.secret", secret=key))
    run_claude_hook(installed, "SessionEnd", sample("claude-code", "SessionEnd.clear"))
    run_codex_hook(installed, "Stop", sample("codex", "Stop"))
    items = gate.wait_for(5)

    assert ["Fees are half done." in text.decode() for text in shown] == [True, True]
    assert {(query_of(item["url"])["agent"], query_of(item["url"])["event"]) for item in items} == {
        ("claude-code", "SessionStart"),
        ("claude-code", "PostToolUse"),
        ("claude-code", "SessionEnd"),
        ("codex", "SessionStart"),
        ("codex", "Stop"),
    }
    assert len({key_of(item) for item in items}) == 5
    assert set(gate.tokens) == {"Bearer of-the-test"}
    assert key not in json.dumps(items)


@pytest.mark.parametrize("home", DIRECTORIES[:1], indirect=True)
def test_every_installed_hook_runs(installed: Path, gate: Gate):
    run = {
        CLAUDE_CODE: run_claude_hook,
        CODEX: run_codex_hook,
        GEMINI_CLI: run_gemini_hook,
        CURSOR: run_cursor_hook,
    }
    wanted = {(client.name, event) for client in run for event in client.hook_events}
    for client, hook in run.items():
        for event in client.hook_events:
            hook(installed, event, {"session_id": "s", "hook_event_name": event, "cwd": "/"})
    items = gate.wait_for(len(wanted))

    assert {(query_of(i["url"])["agent"], query_of(i["url"])["event"]) for i in items} == wanted


def test_each_client_is_given_a_handoff_in_the_shape_that_it_reads(installed: Path, gate: Gate):
    gate.handoff = "Fees are half done."
    gemini = json.loads(run_gemini_hook(installed, "SessionStart", sample("gemini-cli", "SessionStart")))
    cursor = json.loads(run_cursor_hook(installed, "sessionStart", sample("cursor", "sessionStart")))
    later = json.loads(run_gemini_hook(installed, "BeforeAgent", {"session_id": "other", "prompt": "go on"}))
    said = json.loads(
        run_cursor_hook(installed, "beforeSubmitPrompt", {"conversation_id": "o", "prompt": "go"})
    )

    assert gemini["hookSpecificOutput"]["hookEventName"] == "SessionStart"
    assert later["hookSpecificOutput"]["hookEventName"] == "BeforeAgent"
    assert "half done" in gemini["hookSpecificOutput"]["additionalContext"]
    assert list(cursor) == ["additional_context"]
    assert "half done" in cursor["additional_context"]
    assert said == {}


def test_the_commands_preview_apply_report_and_remove(tmp_path: Path, gate: Gate):
    home = tmp_path / "h"
    (home / ".local/share/memoryd/data").mkdir(parents=True)
    token = home / ".local/share/memoryd/data/token"
    token.write_text("of-the-test")
    shown = memoryd(home, "install_hooks", "claude", "--url", gate.url)
    assert "Nothing was written" in shown
    assert not (home / ".claude").exists()

    report = json.loads(memoryd(home, "install_hooks", "--apply", "--json", "--url", gate.url))
    assert report["applied"]
    assert {change["action"] for change in report["changes"]} == {"create"}
    assert any("/hooks" in note for note in report["notes"])

    assert "create" in memoryd(home, "install_mcp", "--apply")
    assert "Nothing to change" in memoryd(home, "install_mcp", "--apply")
    assert "of-the-test" not in memoryd(home, "install_mcp", "--url", "http://other.test")

    memoryd(home, "uninstall", "--apply")
    assert [path for path in home.rglob("*") if path.is_file() and "-backup-" not in path.name] == [token]


def test_errors_are_one_sentence_and_exit_code_1(tmp_path: Path):
    assert memoryd(tmp_path, "install_mcp", code=1).startswith("memoryd: there is no token")
    told = json.loads(memoryd(tmp_path, "install_hooks", "emacs", "--json", code=1))
    assert told["error"]["code"] == "not_found"


def test_the_command_line_form_of_the_hook_does_the_same(tmp_path: Path, gate: Gate):
    environ = {
        "HOME": str(tmp_path),
        "PYTHONPATH": str(ROOT),
        "MEMORYD_URL": gate.url,
        "MEMORYD_TOKEN": "of-the-test",
    }
    run = "import sys; from client.commands import hook as c; c.command(sys.argv[1:])"
    for arguments in (["codex", "Stop", "--unknown-option"], ["codex"], []):
        done = subprocess.run(
            [sys.executable, "-c", run, *arguments],
            input=json.dumps(sample("codex", "Stop")).encode(),
            env=environ,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    (item,) = gate.wait_for(1)

    assert query_of(item["url"])["event"] == "Stop"

"""What Gemini CLI and Cursor get into their files, each in its own spelling."""

from __future__ import annotations

import json

import pytest

from client.installers import Place
from client.launcher import command_line, launcher_path
from memory_core.agents.cursor import CURSOR
from memory_core.agents.gemini_cli import GEMINI_CLI
from tests.client.installing import install, uninstall, write

#: Every event name that Cursor documents.
CURSOR_EVENTS = {
    *("sessionStart", "sessionEnd", "beforeSubmitPrompt", "preToolUse", "postToolUse", "postToolUseFailure"),
    *("subagentStart", "subagentStop", "beforeShellExecution", "afterShellExecution", "beforeMCPExecution"),
    *("afterMCPExecution", "beforeReadFile", "afterFileEdit", "afterAgentResponse", "afterAgentThought"),
    *("preCompact", "stop", "beforeTabFileRead", "afterTabFileEdit", "workspaceOpen"),
}


def test_gemini_gets_a_command_line_with_a_timeout_in_milliseconds(place: Place):
    install(place, "gemini")
    config = json.loads((place.home / ".gemini/settings.json").read_text())

    assert list(config["hooks"]) == list(GEMINI_CLI.hook_events)
    assert config["hooks"]["BeforeAgent"] == [
        {
            "hooks": [
                {
                    "type": "command",
                    "name": "memoryd",
                    "command": command_line(launcher_path(place.home), "gemini-cli", "BeforeAgent"),
                    "timeout": 10_000,
                }
            ]
        }
    ]


def test_cursor_gets_a_flat_list_under_version_one_and_only_names_that_it_knows(place: Place):
    """One unknown event name, and Cursor ignores the whole file."""
    install(place, "cursor")
    config = json.loads((place.home / ".cursor/hooks.json").read_text())

    assert config["version"] == 1
    assert set(config["hooks"]) == set(CURSOR.hook_events) <= CURSOR_EVENTS
    assert [set(handler) for handler in config["hooks"]["stop"]] == [{"type", "command", "timeout"}]


def test_the_newer_clients_get_the_endpoint_in_their_own_spelling(place: Place, token: str):
    install(place, "gemini-cli", "cursor", url="https://box.test")
    headers = {"Authorization": f"Bearer {token}"}

    gemini = json.loads((place.home / ".gemini/settings.json").read_text())["mcpServers"]["memoryd"]
    cursor = json.loads((place.home / ".cursor/mcp.json").read_text())["mcpServers"]["memoryd"]
    assert gemini == {"httpUrl": "https://box.test/mcp", "headers": headers, "timeout": 30_000}
    assert cursor == {"url": "https://box.test/mcp", "headers": headers}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (".cursor/hooks.json", '{"version": 1}'),
        (".cursor/hooks.json", '{"version": 1, "hooks": {}}'),
        (".gemini/settings.json", "{}"),
        (".claude/settings.json", "{}"),
    ],
)
def test_a_nearly_empty_file_of_somebody_else_is_never_deleted(name: str, text: str, place: Place):
    path = write(place.home / name, text)
    uninstall(place)
    assert path.read_text() == text

    install(place)
    uninstall(place)
    assert json.loads(path.read_text()) in ({}, {"version": 1})

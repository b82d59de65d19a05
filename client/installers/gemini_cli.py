"""Gemini CLI: hooks and the MCP server, both in `settings.json`."""

from __future__ import annotations

from pathlib import Path

from client import hook_groups
from client.changes import FileChange
from client.installers import SERVER_NAME, Installer, Place, installers
from client.json_config import Config, change_json, section, take_out
from client.launcher import command_line, is_our_line
from memory_core.agents.gemini_cli import GEMINI_CLI

_TIMEOUT_MILLISECONDS = 10_000
_CALL_TIMEOUT_MILLISECONDS = 30_000


def _settings(place: Place) -> Path:
    return place.home / ".gemini" / "settings.json"


def hooks(place: Place, launcher: Path) -> list[FileChange]:
    """One command line for a shell; Gemini counts timeouts in milliseconds."""
    wanted = {
        event: {
            "type": "command",
            "name": SERVER_NAME,
            "command": command_line(launcher, GEMINI_CLI.name, event),
            "timeout": _TIMEOUT_MILLISECONDS,
        }
        for event in GEMINI_CLI.hook_events
    }
    path = _settings(place)
    return [change_json(path, lambda config: hook_groups.put(config, path, wanted, _is_ours))]


def mcp(place: Place, url: str, token: str) -> list[FileChange]:
    """`httpUrl`, because Gemini takes a plain `url` for an event stream."""
    path = _settings(place)

    def change(config: Config) -> None:
        server = section(section(config, "mcpServers", path), SERVER_NAME, path)
        server.pop("url", None)
        server["httpUrl"] = url
        section(server, "headers", path)["Authorization"] = f"Bearer {token}"
        server.setdefault("timeout", _CALL_TIMEOUT_MILLISECONDS)

    return [change_json(path, change, holds_token=True)]


def remove(place: Place) -> list[FileChange]:
    path = _settings(place)

    def change(config: Config) -> None:
        hook_groups.take_out(config, path, _is_ours)
        take_out(config, "mcpServers", SERVER_NAME)

    return [change_json(path, change)]


def _is_ours(handler: hook_groups.Handler) -> bool:
    return is_our_line(str(handler.get("command", "")))


GEMINI_CLI_INSTALLER = installers.add("gemini-cli")(
    Installer(
        name="gemini-cli",
        hooks=hooks,
        mcp=mcp,
        remove=remove,
        notes=("Gemini CLI reads its hooks when a session starts: open a new one.",),
    )
)

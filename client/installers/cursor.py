"""Cursor: hooks in `hooks.json`, the MCP server in `mcp.json`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from client.changes import FileChange
from client.installers import SERVER_NAME, Installer, Place, installers
from client.json_config import Config, change_json, section, take_out
from client.launcher import command_line, is_our_line
from memory_core.agents.cursor import CURSOR
from memory_core.errors import Invalid

_TIMEOUT_SECONDS = 10
_VERSION = 1


def _hooks_file(place: Place) -> Path:
    return place.home / ".cursor" / "hooks.json"


def _servers_file(place: Place) -> Path:
    return place.home / ".cursor" / "mcp.json"


def hooks(place: Place, launcher: Path) -> list[FileChange]:
    """One command line for a shell per event. A name that Cursor does not know would void the whole file."""
    wanted = {
        event: {
            "type": "command",
            "command": command_line(launcher, CURSOR.name, event),
            "timeout": _TIMEOUT_SECONDS,
        }
        for event in CURSOR.hook_events
    }
    path = _hooks_file(place)

    def change(config: Config) -> None:
        config.setdefault("version", _VERSION)
        _put(section(config, "hooks", path), path, wanted)

    return [change_json(path, change)]


def mcp(place: Place, url: str, token: str) -> list[FileChange]:
    path = _servers_file(place)

    def change(config: Config) -> None:
        server = section(section(config, "mcpServers", path), SERVER_NAME, path)
        server["url"] = url
        section(server, "headers", path)["Authorization"] = f"Bearer {token}"

    return [change_json(path, change, holds_token=True)]


def remove(place: Place) -> list[FileChange]:
    path, servers = _hooks_file(place), _servers_file(place)

    def without_hooks(config: Config) -> None:
        if "hooks" in config:
            hooks = section(config, "hooks", path)
            if _put(hooks, path, {}) and not hooks:
                del config["hooks"]

    return [
        change_json(path, without_hooks, residue={"version": _VERSION}),
        change_json(servers, lambda config: take_out(config, "mcpServers", SERVER_NAME)),
    ]


def _put(hooks: Config, path: Path, wanted: Mapping[str, dict[str, Any]]) -> bool:
    """Make `wanted` (event → handler) the only handlers of ours; whether anything changed.

    Unlike in Claude Code's table, handlers stand in the event's list themselves.
    """
    changed = False
    for event in [*wanted, *(event for event in hooks if event not in wanted)]:
        before = hooks.get(event, [])
        if not isinstance(before, list):
            raise Invalid(f"{path}: hooks.{event} is no list")
        handler = wanted.get(event)
        if [found for found in before if _is_ours(found)] == ([] if handler is None else [handler]):
            continue
        changed = True
        after = [found for found in before if not _is_ours(found)]
        hooks[event] = after if handler is None else [*after, handler]
        if not hooks[event]:
            del hooks[event]
    return changed


def _is_ours(handler: Any) -> bool:
    return isinstance(handler, dict) and is_our_line(str(handler.get("command", "")))


CURSOR_INSTALLER = installers.add("cursor")(
    Installer(
        name="cursor",
        hooks=hooks,
        mcp=mcp,
        remove=remove,
        notes=(
            "Cursor reads hooks.json again when it is saved; the MCP server may have to be enabled in its settings.",
        ),
    )
)

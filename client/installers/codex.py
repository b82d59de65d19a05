"""Codex CLI: hooks in `hooks.json`, the MCP server in `config.toml`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from client import hook_groups
from client.changes import FileChange, read_text
from client.installers import SERVER_NAME, Installer, Place, installers
from client.json_config import change_json
from client.launcher import command_line, is_our_line
from memory_core.agents.codex import CODEX
from memory_core.errors import Invalid

_TIMEOUT_SECONDS = 10
#: Codex allows these no more than three seconds.
_SHORT = {"SessionEnd": 3, "Interrupt": 3}


def _home(place: Place) -> Path:
    return place.directory("CODEX_HOME", ".codex")


def hooks(place: Place, launcher: Path) -> list[FileChange]:
    """Codex takes one command line for a shell; the path is quoted for it and never changes (trust by hash)."""
    path = _home(place) / "hooks.json"
    wanted = {
        event: {
            "type": "command",
            "command": command_line(launcher, CODEX.name, event),
            "timeout": _SHORT.get(event, _TIMEOUT_SECONDS),
        }
        for event in CODEX.hook_events
    }
    return [change_json(path, lambda config: hook_groups.put(config, path, wanted, _is_ours))]


def mcp(place: Place, url: str, token: str) -> list[FileChange]:
    """The token goes into `http_headers`: `bearer_token_env_var` works only where a shell has set the variable."""
    path = _home(place) / "config.toml"
    before = read_text(path)
    document = _parse(path, before)
    original = document.as_string()
    server = _table(_table(document, "mcp_servers", path, is_super=True), SERVER_NAME, path)
    if server.get("url") != url:
        server["url"] = url
    is_new = "http_headers" not in server
    headers = _table(server, "http_headers", path)
    if headers.get("Authorization") != f"Bearer {token}":
        headers["Authorization"] = f"Bearer {token}"
    if is_new and document.as_string().rstrip().splitlines()[-1:] != [f'Authorization = "Bearer {token}"']:
        headers.add(tomlkit.nl())  # keeps the next table from sticking to ours
    after = document.as_string()
    return [
        FileChange(path=path, before=before, after=before if after == original else after, holds_token=True)
    ]


def remove(place: Place) -> list[FileChange]:
    path = _home(place) / "hooks.json"
    hooks_change = change_json(path, lambda config: hook_groups.take_out(config, path, _is_ours))
    return [hooks_change, *_without_server(_home(place) / "config.toml")]


def _without_server(path: Path) -> list[FileChange]:
    before = read_text(path)
    if before is None:
        return []
    document = _parse(path, before)
    servers: Any = document.get("mcp_servers")
    if not isinstance(servers, dict) or SERVER_NAME not in servers:
        return [FileChange(path=path, before=before, after=before)]
    del servers[SERVER_NAME]
    if not servers:
        del document["mcp_servers"]
    # The blank lines before a last table are ours; they would pile up at the end.
    after = document.as_string().rstrip("\n") + ("\n" if before.endswith("\n") else "")
    return [FileChange(path=path, before=before, after=after if after.strip() else None)]


def _parse(path: Path, text: str | None) -> tomlkit.TOMLDocument:
    try:
        return tomlkit.parse(text or "")
    except (TOMLKitError, ValueError) as error:
        raise Invalid(f"{path} is not valid TOML ({error}); it was left as it is") from error


def _table(parent: Any, name: str, path: Path, *, is_super: bool = False) -> Any:
    found = parent.get(name)
    if found is None:
        parent[name] = tomlkit.table(is_super_table=is_super)
        return parent[name]
    if not isinstance(found, dict):
        raise Invalid(f"{path}: {name!r} is no table")
    return found


def _is_ours(handler: hook_groups.Handler) -> bool:
    return is_our_line(str(handler.get("command", "")))


CODEX_INSTALLER = installers.add("codex")(
    Installer(
        name="codex",
        hooks=hooks,
        mcp=mcp,
        remove=remove,
        notes=(
            "Codex runs a new hook only after you have trusted it: open Codex, type /hooks, and trust memoryd's.",
        ),
    )
)

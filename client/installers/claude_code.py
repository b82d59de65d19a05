"""Claude Code: hooks in `settings.json`, the MCP server in `.claude.json`."""

from __future__ import annotations

from pathlib import Path

from client import hook_groups
from client.changes import FileChange
from client.installers import SERVER_NAME, Installer, Place, installers
from client.json_config import Config, change_json, section, take_out
from client.launcher import is_ours
from memory_core.agents.claude_code import CLAUDE_CODE

#: Given in each hook, because without it a session's end has 1.5 s for all hooks together.
_TIMEOUT_SECONDS = 10


def _settings(place: Place) -> Path:
    return place.directory("CLAUDE_CONFIG_DIR", ".claude") / "settings.json"


def _servers(place: Place) -> Path:
    named = place.environ.get("CLAUDE_CONFIG_DIR")
    return (Path(named).expanduser() if named else place.home) / ".claude.json"


def hooks(place: Place, launcher: Path) -> list[FileChange]:
    """Exec form (`command` and `args`): no shell reads the path, so it may hold anything."""
    wanted = {
        event: {
            "type": "command",
            "command": str(launcher),
            "args": [CLAUDE_CODE.name, event],
            "timeout": _TIMEOUT_SECONDS,
        }
        for event in CLAUDE_CODE.hook_events
    }
    path = _settings(place)
    return [change_json(path, lambda config: hook_groups.put(config, path, wanted, _is_ours))]


def mcp(place: Place, url: str, token: str) -> list[FileChange]:
    path = _servers(place)

    def change(config: Config) -> None:
        server = section(section(config, "mcpServers", path), SERVER_NAME, path)
        server.update(type="http", url=url)
        section(server, "headers", path)["Authorization"] = f"Bearer {token}"

    return [change_json(path, change, holds_token=True)]


def remove(place: Place) -> list[FileChange]:
    settings, servers = _settings(place), _servers(place)

    return [
        change_json(settings, lambda config: hook_groups.take_out(config, settings, _is_ours)),
        change_json(servers, lambda config: take_out(config, "mcpServers", SERVER_NAME)),
    ]


def _is_ours(handler: hook_groups.Handler) -> bool:
    return is_ours(str(handler.get("command", "")))


CLAUDE_CODE_INSTALLER = installers.add("claude-code")(
    Installer(
        name="claude-code",
        hooks=hooks,
        mcp=mcp,
        remove=remove,
        notes=("Claude Code reads its hooks when a session starts: open a new one.",),
    )
)

"""How memoryd is installed into agent clients: one file per client, each registers one `Installer`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from client.changes import FileChange
from memory_core.registry import Registry

#: The name under which clients know memoryd's MCP server.
SERVER_NAME = "memoryd"


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where things lie for one user."""

    home: Path
    environ: Mapping[str, str] = field(default_factory=dict[str, str])

    def directory(self, variable: str, default: str) -> Path:
        """The directory that an environment variable names, else `default` below the home."""
        named = self.environ.get(variable)
        return Path(named).expanduser() if named else self.home / default


@dataclass(frozen=True, kw_only=True)
class Installer:
    """What changes in one client's configuration. All three are pure but for reading the files."""

    name: str
    #: Register the hooks, all naming the launcher.
    hooks: Callable[[Place, Path], list[FileChange]]
    #: Register the MCP endpoint, given its URL and a token.
    mcp: Callable[[Place, str, str], list[FileChange]]
    #: Take out exactly what the other two put in.
    remove: Callable[[Place], list[FileChange]]
    #: What a person still has to do after installing, as sentences.
    notes: tuple[str, ...] = ()


installers: Registry[Installer] = Registry("installer")

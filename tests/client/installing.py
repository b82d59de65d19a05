"""Installing into a home directory and looking at what came of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from client.changes import apply
from client.install import Connection, installers_named, plan_hooks, plan_mcp, plan_removal
from client.installers import Place
from tests.client.conftest import NOW_US


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def install(place: Place, *names: str, url: str | None = None) -> list[Path]:
    chosen = installers_named(names)
    backups = apply(plan_hooks(place, chosen, Connection(url=url)), now_us=NOW_US)
    return backups + apply(plan_mcp(place, chosen, Connection(url=url)), now_us=NOW_US)


def uninstall(place: Place, *names: str) -> None:
    apply(plan_removal(place, installers_named(names)), now_us=NOW_US)


def files(home: Path) -> dict[str, str]:
    """Every file but backups and the server's own."""
    found = (path for path in home.rglob("*") if path.is_file())
    return {
        str(path.relative_to(home)): path.read_text("utf-8")
        for path in found
        if "backup" not in path.name and path.name != "token"
    }


def hooks_of(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text("utf-8"))["hooks"]

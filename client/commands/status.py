"""`memoryd status`: what the server is and how it is doing."""

from __future__ import annotations

from typing import Any

import click

from client.output import emit, json_option, scope_options, table, visible
from client.server import Server
from client.settings import load


@click.command()
@scope_options
@json_option
def command(workspace: str | None, project: str | None, as_json: bool) -> None:
    """Show health, counts and backlog."""
    status = Server(load()).tool("memory_status", workspace=workspace, project=project)
    emit(status, as_json=as_json, text=lambda: table(("", ""), flattened(status), empty="No status."))


def flattened(value: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Nested facts as rows: `broker.version` → value."""
    rows: list[tuple[str, Any]] = []
    for key, item in value.items():
        name = f"{prefix}{key}"
        if isinstance(item, dict):
            rows += flattened(item, f"{name}.")
        elif name.endswith("wiki.troubles"):
            rows += [(name, f"{visible(one['file'])}: {visible(one['trouble'])}") for one in item]
        else:
            rows.append((name, _worded(item)))
    return rows


def _worded(value: Any) -> Any:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else value

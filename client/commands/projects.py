"""`memoryd projects`: which projects there are."""

from __future__ import annotations

from typing import Any

import click

from client.output import emit, json_option, table
from client.server import Server
from client.settings import load


@click.command()
@click.option("--workspace", help="Only this workspace; default: all.")
@json_option
def command(workspace: str | None, as_json: bool) -> None:
    """List all projects."""
    found = _all(Server(load()), workspace)
    columns = ("workspace", "project", "pages", "last change")
    rows = [
        (p["workspace_name"], p["project_name"], p["page_count"], (p.get("last_updated") or "")[:19])
        for p in found
    ]
    emit(found, as_json=as_json, text=lambda: table(columns, rows, empty="No project yet."))


def _all(server: Server, workspace: str | None) -> list[dict[str, Any]]:
    found, more = server.page("/api/v1/projects", workspace=workspace)
    while more is not None:
        part, more = server.page(more)
        found += part
    return found

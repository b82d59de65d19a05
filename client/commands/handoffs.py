"""`memoryd handoffs`: what sessions left for the next agent."""

from __future__ import annotations

import click

from client.output import emit, json_option, list_scope_options, shortened, table
from client.server import Server
from client.settings import load


@click.command()
@click.option("--state", type=click.Choice(["open", "offered", "accepted", "expired"]))
@click.option("-n", "--limit", type=click.IntRange(1, 200), default=20, show_default=True)
@list_scope_options
@json_option
def command(state: str | None, limit: int, workspace: str | None, project: str | None, as_json: bool) -> None:
    """List handoffs, newest first. Looking at them claims none."""
    found = Server(load()).get(
        "/api/v1/handoffs", state=state, limit=limit, workspace=workspace, project=project
    )
    columns = ("created", "from", "state", "project", "summary", "id")
    rows = [
        (
            h["created_at"][:19],
            h.get("from_agent") or "by hand",
            h["state"],
            h.get("project"),
            shortened(h["summary"], 80),
            h["id"],
        )
        for h in found
    ]
    emit(found, as_json=as_json, text=lambda: table(columns, rows, empty="No handoff.", cut="summary"))

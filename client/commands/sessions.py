"""`memoryd sessions`: the sessions that memoryd has seen."""

from __future__ import annotations

import click

from client.output import emit, json_option, list_scope_options, table
from client.server import Server
from client.settings import load


@click.command()
@click.option("-n", "--limit", type=click.IntRange(1, 100), default=20, show_default=True)
@click.option("--open", "only_open", is_flag=True, help="Only sessions that have not ended.")
@list_scope_options
@json_option
def command(limit: int, only_open: bool, workspace: str | None, project: str | None, as_json: bool) -> None:
    """List sessions, newest first."""
    found = Server(load()).get(
        "/api/v1/sessions",
        limit=limit,
        state="open" if only_open else None,
        workspace=workspace,
        project=project,
    )
    columns = ("started", "agent", "project", "state", "events", "title", "id")
    rows = [
        (
            s["started_at"][:19],
            s["agent"],
            s["project"],
            "ended" if s.get("ended_at") else "open",
            s["observation_count"],
            s.get("title"),
            s["id"],
        )
        for s in found
    ]
    emit(found, as_json=as_json, text=lambda: table(columns, rows, empty="No session yet.", cut="title"))

"""`memoryd versions`: what a page said before."""

from __future__ import annotations

import click

from client.output import emit, json_option, scope_options, table
from client.server import Server
from client.settings import load


@click.command()
@click.argument("path")
@click.option("-n", "--limit", type=click.IntRange(1, 200), default=20, show_default=True)
@scope_options
@json_option
def command(path: str, limit: int, workspace: str | None, project: str | None, as_json: bool) -> None:
    """List the versions of the page at PATH, newest first, also of a page that was deleted.

    `memoryd restore-page PATH --from VERSION` shows what one said and brings it back.
    """
    found = Server(load()).get(
        "/api/v1/pages/versions", path=path, limit=limit, workspace=workspace, project=project
    )
    columns = ("version", "when", "state", "cause", "by", "characters", "title")
    rows = [
        (
            v["version_id"],
            v["created_at"][:19],
            v["state"],
            v["cause"],
            v["author"],
            v["chars"],
            v["title"],
        )
        for v in found
    ]
    emit(found, as_json=as_json, text=lambda: table(columns, rows, empty="No version.", cut="title"))

"""`memoryd checkpoints`: states of the wiki that can be gone back to."""

from __future__ import annotations

import click

from client.output import emit, json_option, list_scope_options, table
from client.server import Server
from client.settings import load


@click.command()
@click.argument("path", required=False)
@click.option("-n", "--limit", type=click.IntRange(1, 100), default=20, show_default=True)
@list_scope_options
@json_option
def command(path: str | None, limit: int, workspace: str | None, project: str | None, as_json: bool) -> None:
    """List commits of the wiki, newest first; with PATH, those that changed this page.

    What stands under "from" is what `memoryd restore-page PATH --from` takes.
    """
    found = Server(load()).get(
        "/api/v1/checkpoints", path=path, limit=limit, workspace=workspace, project=project
    )
    # Either may be given to restore-page; a checkpoint whose commit is not made yet has only its own id.
    columns = ("when", "from", "by", "message")
    rows = [
        (c["at"][:19], c["commit"][:12] if c["commit"] else c["checkpoints"][0], c["author"], c["message"])
        for c in found
    ]
    emit(found, as_json=as_json, text=lambda: table(columns, rows, empty="No checkpoint.", cut="message"))

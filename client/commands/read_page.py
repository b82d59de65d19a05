"""`memoryd read-page`: print one page."""

from __future__ import annotations

import click

from client.output import emit, json_option, scope_options, visible
from client.server import Server
from client.settings import load
from memory_core.domain.recalled import unfenced


@click.command()
@click.argument("path", required=False)
@click.option("-q", "--query", help="Read the best match of a search instead.")
@scope_options
@json_option
def command(
    path: str | None, query: str | None, workspace: str | None, project: str | None, as_json: bool
) -> None:
    """Print the page at PATH, or the best match of --query."""
    if (path is None) == (query is None):
        raise click.UsageError("give either PATH or --query")
    page = Server(load()).tool(
        "memory_read_page", path=path, query=query, workspace=workspace, project=project
    )
    emit(page, as_json=as_json, text=lambda: click.echo(visible(unfenced(page["body"]))))

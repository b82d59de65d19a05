"""`memoryd read-page`: print one page."""

from __future__ import annotations

from typing import Any

import click

from client.output import emit, json_option, scope_options, visible
from client.server import Server, ServerError
from client.settings import load
from memory_core.domain.recalled import unfenced


@click.command()
@click.argument("path", required=False)
@click.option("-q", "--query", help="Read the best match of a search instead.")
@click.option(
    "--offset",
    type=click.IntRange(0),
    help="Begin at this character; with --json a long page comes in parts.",
)
@scope_options
@json_option
def command(
    path: str | None,
    query: str | None,
    offset: int | None,
    workspace: str | None,
    project: str | None,
    as_json: bool,
) -> None:
    """Print the page at PATH, or the best match of --query."""
    if (path is None) == (query is None):
        raise click.UsageError("give either PATH or --query")
    server = Server(load())
    page = server.tool(
        "memory_read_page", path=path, query=query, offset=offset, workspace=workspace, project=project
    )
    emit(page, as_json=as_json, text=lambda: _print(_whole(server, page)))


def _print(text: str) -> None:
    click.echo(visible(text), nl=not text.endswith("\n"))


def _whole(server: Server, page: dict[str, Any]) -> str:
    """The text of a page that comes in parts."""
    text = unfenced(page["body"]).removesuffix("\n")
    part = page
    while "next_offset" in part:
        part = server.tool(
            "memory_read_page",
            path=page["path"],
            offset=part["next_offset"],
            workspace=page["workspace"],
            project=page["project"],
        )
        if part["version_id"] != page["version_id"]:
            raise ServerError(
                "the page changed while it was read; read it again", code="conflict", status=409
            )
        text += unfenced(part["body"]).removesuffix("\n")
    return text

"""`memoryd delete-page`: tombstone a page after showing it."""

from __future__ import annotations

from typing import Any

import click

from client.output import confirm, emit, inline, json_option, scope_options, visible
from client.server import Server
from client.settings import load
from memory_core.domain.recalled import unfenced


@click.command()
@click.argument("path")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@scope_options
@json_option
def command(path: str, yes: bool, workspace: str | None, project: str | None, as_json: bool) -> None:
    """Delete the page at PATH. Its history is kept; its file goes away."""
    server = Server(load())
    if not yes:
        page = server.tool("memory_read_page", path=path, workspace=workspace, project=project)
        click.echo(
            f"{page['path']}: {inline(page['title'])} ({len(unfenced(page['body']))} characters)", err=True
        )
        confirm("Delete it?")
    result = server.tool("memory_delete_page", path=path, workspace=workspace, project=project)
    emit(result, as_json=as_json, text=lambda: click.echo(_sentence(result, path)))


def _sentence(result: dict[str, Any], path: str) -> str:
    if result.get("status") == "pending":
        return f"Accepted, not yet committed: command {result['command_id']}"
    named = inline(result.get("path", path))
    if result.get("status") == "superseded":
        return f"Not deleted: {visible(result['note'])}"
    if result.get("status") == "file_waits":
        return f"Deleted {named}. {visible(result['note'])}"
    return (
        f"Deleted {named}" if result.get("existed", True) else f"There is no page {named}; nothing to delete"
    )

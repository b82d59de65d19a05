"""`memoryd write-page`: write a page, from an option or from standard input."""

from __future__ import annotations

import sys

import click

from client.output import emit, json_option, scope_options, visible
from client.server import Server
from client.settings import load


@click.command()
@click.argument("path")
@click.option("-b", "--body", help="The text; without it, standard input is read.")
@click.option("-t", "--title")
@click.option("--tag", "tags", multiple=True, help="May be given several times.")
@click.option("--tier", type=click.Choice(["working", "episodic", "semantic", "procedural"]))
@click.option("--pin", is_flag=True, help="Exempt from retention.")
@click.option("--expires", metavar="DATE", help="YYYY-MM-DD or RFC 3339.")
@scope_options
@json_option
def command(
    path: str,
    body: str | None,
    title: str | None,
    tags: tuple[str, ...],
    tier: str | None,
    pin: bool,
    expires: str | None,
    workspace: str | None,
    project: str | None,
    as_json: bool,
) -> None:
    """Write the page at PATH. An older version stays in its history."""
    if body is None:
        if sys.stdin.isatty():
            raise click.UsageError("give --body, or pipe the text in")
        body = sys.stdin.read()
    result = Server(load()).tool(
        "memory_write_page",
        path=path,
        body=body,
        title=title,
        tags=list(tags) or None,
        tier=tier,
        pinned=pin or None,
        expires_at=expires,
        workspace=workspace,
        project=project,
    )
    emit(result, as_json=as_json, text=lambda: click.echo(_sentence(result)))


def _sentence(result: dict[str, str]) -> str:
    if result.get("status") == "pending":
        return f"Accepted, not yet committed: command {result['command_id']}"
    where = f"{result['workspace']}/{result['project']}:{visible(result['path'])}"
    if result.get("status") == "superseded":
        return f"Wrote {where}, below an edit by hand. {visible(result['note'])}"
    if result.get("index_status") == "file_waits":
        return f"Wrote {where}. {visible(result['note'])}"
    return f"Wrote {where}"

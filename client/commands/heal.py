"""`memoryd heal`: write lost files of the wiki again from the database."""

from __future__ import annotations

from typing import Any

import click

from client import wiki_task
from client.output import confirm, emit, json_option
from client.server import Server
from client.settings import load


@click.command()
@click.option("--broken", is_flag=True, help="Also replace files that hold no text any more.")
@click.option(
    "--accept-deletions", is_flag=True, help="The files were deleted on purpose: delete their pages too."
)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@json_option
def command(broken: bool, accept_deletions: bool, yes: bool, as_json: bool) -> None:
    """Write files that vanished again, from each page's newest version.

    Shows first what would be done. A file that somebody edited is never overwritten: its text becomes the
    newest version. Interrupted, the work goes on when the server is back.
    """
    if broken and accept_deletions:
        raise click.UsageError("--accept-deletions writes no file; choose one")
    server = Server(load())
    before = server.get("/api/v1/wiki")
    missing = sum(row["missing"] for row in before.get("held", []))
    count = missing + (before.get("broken", 0) if broken else 0)
    if not as_json:
        _preview(before, count, broken=broken, accept_deletions=accept_deletions)
    if count and not yes:
        confirm("Delete these pages?" if accept_deletions else "Write these files?")
    started = wiki_task.start(server, "heal", broken=broken, accept_deletions=accept_deletions)
    state = wiki_task.follow(server, total=count, quiet=as_json)
    emit(
        {**started, **state},
        as_json=as_json,
        text=lambda: click.echo(f"Done: {wiki_task.counts_in_words(state['task'])}."),
    )


def _preview(state: dict[str, Any], count: int, *, broken: bool, accept_deletions: bool) -> None:
    for row in state.get("held", []):
        verb = "are deleted" if accept_deletions else "are written again"
        click.echo(
            f"{row['project']}: {row['missing']} of {row['pages']} pages without a file {verb}", err=True
        )
    if state.get("broken"):
        verb = "are replaced" if broken else "stay (--broken replaces them)"
        click.echo(f"{state['broken']} files that hold no text {verb}", err=True)
    if not count:
        click.echo("No file is missed; looking once more.", err=True)

"""`memoryd reindex`: rebuild the tables of pages from the wiki's files."""

from __future__ import annotations

import click

from client import wiki_task
from client.output import emit, json_option
from client.server import Server
from client.settings import load


@click.command()
@click.option(
    "--force", is_flag=True, help="Although the database holds pages: take in what it does not know."
)
@click.option("--history", is_flag=True, help="Also bring the earlier versions of each page back, from git.")
@click.option(
    "--no-wait", is_flag=True, help="Start it and return; `memoryd reindex` again tells when it is done."
)
@json_option
def command(force: bool, history: bool, no_wait: bool, as_json: bool) -> None:
    """Rebuild projects and pages from the wiki's files, after the database was lost.

    The server must run with a new database: start it once with `memoryd up --new-database`. Interrupted, the
    work goes on when the server is back.
    """
    server = Server(load())
    started = wiki_task.start(server, "reindex", force=force, history=history)
    if not as_json:
        lost = ", ".join(started.get("cannot_come_back", []))
        click.echo(f"Pages and projects come back from their files. What cannot come back: {lost}.", err=True)
    if no_wait:
        emit(started, as_json=as_json, text=lambda: click.echo("Started."))
        return
    state = wiki_task.follow(server, total=0, quiet=as_json)
    if not as_json:
        wiki_task.tell_troubles(state)
    emit(
        {**started, **state},
        as_json=as_json,
        text=lambda: click.echo(f"Done: {wiki_task.counts_in_words(state['task'])}."),
    )

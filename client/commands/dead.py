"""`memoryd dead`: commands that failed each time they were tried."""

from __future__ import annotations

import click

from client.output import confirm, emit, json_option, shortened, table
from client.server import Server
from client.settings import load


@click.group()
def command() -> None:
    """Commands that could not be applied: list, show, retry, discard."""


@command.command("list")
@json_option
def list_letters(as_json: bool) -> None:
    """List dead letters, oldest first."""
    found = Server(load()).get("/api/v1/dead")
    columns = ("id", "command", "cause", "tries", "when", "error")
    rows = [
        (d["id"], d["name"], d["cause"], d["attempts"], d["created_at"][:19], shortened(d["error"], 60))
        for d in found
    ]
    emit(found, as_json=as_json, text=lambda: table(columns, rows, empty="No dead letter.", cut="error"))


@command.command()
@click.argument("letter_id")
@json_option
def show(letter_id: str, as_json: bool) -> None:
    """Show one dead letter whole."""
    letter = Server(load()).get(f"/api/v1/dead/{letter_id}")
    emit(
        letter,
        as_json=as_json,
        text=lambda: table(("", ""), sorted(letter.items()), empty="It is empty."),
    )


@command.command()
@click.argument("letter_id")
@json_option
def retry(letter_id: str, as_json: bool) -> None:
    """Apply a dead letter again; what it was made for is checked first."""
    answer = Server(load()).request("POST", f"/api/v1/dead/{letter_id}/retry", body={})[0]
    emit(answer, as_json=as_json, text=lambda: click.echo(f"{letter_id}: {answer.get('status', 'applied')}"))


@command.command()
@click.argument("letter_id")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@json_option
def discard(letter_id: str, yes: bool, as_json: bool) -> None:
    """Throw a dead letter away for good."""
    server = Server(load())
    if not yes:
        letter = server.get(f"/api/v1/dead/{letter_id}")
        click.echo(f"{letter['name']} of {letter['recorded_at'][:19]}: {letter['error'][:200]}", err=True)
        confirm("Its content is lost after this. Discard it?")
    answer = server.request("POST", f"/api/v1/dead/{letter_id}/discard", body={})[0]
    emit(answer, as_json=as_json, text=lambda: click.echo(f"{letter_id}: discarded"))

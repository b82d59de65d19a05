"""`memoryd explore`: a project in a few sentences, and how long nobody worked on it."""

from __future__ import annotations

from typing import Any

import click

from client.commands.search import print_hit
from client.output import emit, json_option, scope_options, visible
from client.server import Server
from client.settings import load
from memory_core.domain.recalled import unfenced


@click.command()
@click.argument("focus", nargs=-1)
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(1, 100),
    default=10,
    show_default=True,
    help="Recently changed pages, which --json shows.",
)
@scope_options
@json_option
def command(
    focus: tuple[str, ...], limit: int, workspace: str | None, project: str | None, as_json: bool
) -> None:
    """Say in sentences what is known of a project: what is there, where work stopped, what changed, what is open.

    With FOCUS also what answers that best. No character of it is special. With --json the briefing of the project comes too.
    """
    answer = Server(load()).tool(
        "memory_explore",
        focus=" ".join(focus).strip() or None,
        recent_pages_limit=limit,
        workspace=workspace,
        project=project,
    )
    emit(answer, as_json=as_json, text=lambda: _print(answer))


def _print(answer: dict[str, Any]) -> None:
    click.echo(visible(unfenced(answer["prose"]).strip()))
    for hit in answer["hits"]:
        click.echo()
        print_hit(hit)
    if failed := answer.get("streams_failed"):
        click.echo(f"\nNot looked at, because it failed: {visible(', '.join(failed))}.", err=True)

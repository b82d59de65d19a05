"""`memoryd maintain`: keep house now, and say what that came to."""

from __future__ import annotations

import click

from client.commands import schedule
from client.output import json_option


@click.command()
@click.option(
    "--wait",
    "seconds",
    type=click.IntRange(1, 86_400),
    default=600,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for its end; it goes on without you.",
)
@json_option
@click.pass_context
def command(context: click.Context, seconds: int, as_json: bool) -> None:
    """Do the retention of durable sessions, knowledge and assets now, wait for its end, and print its counts."""
    context.invoke(
        schedule.run, kind="maintenance", workspace=None, project=None, seconds=seconds, as_json=as_json
    )

"""`memoryd uninstall`: take hooks and MCP endpoint out of agent clients again."""

from __future__ import annotations

import click

from client.commands._installing import run, shared_options
from client.install import plan_removal


@click.command()
@click.argument("clients", nargs=-1)
@shared_options
def command(clients: tuple[str, ...], is_applied: bool, with_diff: bool, as_json: bool) -> None:
    """Take memoryd out of CLIENTS (default: all), and nothing else.

    With the last client the launcher and the client's settings go too. What was not delivered yet
    stays in the spool, and no memory is deleted. Without --apply it only shows what would change.
    """
    run(plan_removal, clients, is_applied=is_applied, as_json=as_json, with_diff=with_diff)

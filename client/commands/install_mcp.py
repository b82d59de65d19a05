"""`memoryd install-mcp`: register the MCP endpoint in agent clients."""

from __future__ import annotations

import click

from client.commands._installing import connection_options, run, shared_options
from client.install import Connection, plan_mcp


@click.command()
@click.argument("clients", nargs=-1)
@connection_options
@shared_options
def command(
    clients: tuple[str, ...], connection: Connection, is_applied: bool, with_diff: bool, as_json: bool
) -> None:
    """Register memoryd's MCP server in CLIENTS (default: all that are supported).

    The token is written into the clients' own files, which are then readable by you alone. Without
    --apply it only shows what would change.
    """
    run(
        lambda place, chosen: plan_mcp(place, chosen, connection),
        clients,
        is_applied=is_applied,
        as_json=as_json,
        with_diff=with_diff,
    )

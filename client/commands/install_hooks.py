"""`memoryd install-hooks`: register the hooks in agent clients."""

from __future__ import annotations

import click

from client.commands._installing import connection_options, run, shared_options
from client.install import Connection, plan_hooks


@click.command()
@click.argument("clients", nargs=-1)
@connection_options
@shared_options
def command(
    clients: tuple[str, ...], connection: Connection, is_applied: bool, with_diff: bool, as_json: bool
) -> None:
    """Register memoryd's hooks in CLIENTS (default: all that are supported).

    Without --apply it only shows what would change. Existing settings are kept; a file that is
    changed gets a dated backup beside it.
    """
    run(
        lambda place, chosen: plan_hooks(place, chosen, connection),
        clients,
        is_applied=is_applied,
        as_json=as_json,
        with_diff=with_diff,
        with_notes=True,
    )

"""`memoryd hook`: what a hook of an agent client runs. The launcher in the hooks does the same without this command line."""

from __future__ import annotations

import sys

import click

from client import hook


@click.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
@click.argument("client", required=False)
@click.argument("event", required=False)
@click.option("--source", default="user", show_default=True, help="The configuration that runs this hook.")
@click.option("--drain", is_flag=True, help="Deliver what waits in the spool, and return.")
@click.option("--check-capture", is_flag=True, help="Print how the directory's policy decides; keep nothing.")
@click.pass_context
def command(
    context: click.Context,
    client: str | None,
    event: str | None,
    source: str,
    drain: bool,
    check_capture: bool,
) -> None:
    """Keep one hook event of CLIENT, read from standard input, and answer what the client expects.

    Returns at once and always with exit code 0; the event is delivered in the background. --drain waits, and ends with 3
    when nobody answers, with 4 when the token is not accepted, with 1 when something else keeps events back.
    """
    del context  # unknown options of a future installer must not make a hook fail
    named = [part for part in (client, event) if part]
    if check_capture:
        sys.exit(hook.main(["--check-capture"]))
    sys.exit(hook.main(["--drain"] if drain else [*named, "--source", source] if len(named) == 2 else named))

"""The `memoryd` command. A subcommand's module is imported only when it is asked for: hooks run on every keystroke of an agent."""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
from typing import Any

import click

import client.commands
from client.output import fail
from client.server import ServerError
from memory_core.config import unknown_variables
from memory_core.errors import CoreError


class Commands(click.Group):
    """Finds each subcommand in `client/commands/<name>.py`."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  (click calls it so)
        found = (module.name for module in pkgutil.iter_modules(client.commands.__path__))
        return sorted(name.replace("_", "-") for name in found if not name.startswith("_"))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        return importlib.import_module(f"client.commands.{cmd_name.replace('-', '_')}").command


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="memoryd")
def cli() -> None:
    """Long-term memory for coding agents."""


def _warn_of_variables() -> None:
    for variable, meant in unknown_variables(os.environ).items():
        hint = f"; did you mean {meant}?" if meant else ""
        click.echo(f"memoryd: nobody reads {variable}{hint}", err=True)


def main(arguments: list[str] | None = None) -> Any:
    """Run the command line; what went wrong becomes one sentence and an exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    # A hook prints nothing that its host does not expect, and `up` refuses what is nearly a setting itself.
    if arguments[:1] not in (["hook"], ["up"], ["worker"], ["completions"]):
        _warn_of_variables()
    try:
        return cli(arguments, prog_name="memoryd")
    except (ServerError, CoreError) as error:
        fail(error, as_json="--json" in arguments)

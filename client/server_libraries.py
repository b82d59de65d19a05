"""Whether the server's libraries are installed here: a client alone does without them."""

from __future__ import annotations

import importlib.util
import sys

import click

_NOT_INSTALLED = 69


def need(*modules: str, extra: str = "server") -> None:
    """Ends the command with 69 and what to do where one is missing. Imports none of them."""
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        click.echo(
            f"memoryd: the {extra}'s libraries are not installed ({', '.join(missing)} missing); "
            f"run: pip install 'memoryd[{extra}]'",
            err=True,
        )
        sys.exit(_NOT_INSTALLED)

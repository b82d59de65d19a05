"""`memoryd up`: become the supervisor of the server. The client's own library is enough to say what is missing."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from client import server_libraries
from memory_core import config
from memory_core.errors import Invalid

#: What the server extra brings; one of each is asked for, without importing it.
_SERVER = ("celery", "flask", "gunicorn", "redis", "sqlalchemy")
_BAD_SETTING = 78


@click.command(
    epilog="""\b
Exit codes:
  0   stopped by a signal, everything drained
  2   an option is wrong
  69  the broker, a port or the server's libraries cannot be had
  70  a fault of memoryd
  75  memoryd already runs on this data directory (its process is named)
  78  this data directory, broker or setting is refused (the reason is named)"""
)
@click.option("--data-dir", type=click.Path(path_type=Path), help="Where everything is kept.")
@click.option("--port", type=click.IntRange(1, 65_534), help="Port of hooks and MCP. [default: 49374]")
@click.option(
    "--probe-port", type=click.IntRange(1, 65_535), help="Port of /livez and /readyz. [default: port + 1]"
)
@click.option("--broker", metavar="URL", help="Use this Valkey or Redis instead of the embedded one.")
@click.option(
    "--accept-weaker-durability",
    is_flag=True,
    default=None,
    help="Use the broker although it does not sync each append; says which promise is void.",
)
@click.option(
    "--take-over",
    is_flag=True,
    default=None,
    help="Go on with a data directory that was moved, and keep its id; nobody may use the original any more.",
)
@click.option(
    "--new-install",
    is_flag=True,
    default=None,
    help="Give a copied data directory an identity of its own; the original lives on.",
)
@click.option(
    "--new-database",
    is_flag=True,
    default=None,
    help="Begin with an empty database where the old one is lost; then run: memoryd reindex.",
)
@click.option(
    "--flower",
    is_flag=True,
    default=None,
    help="Show tasks and workers in Flower, on a loopback port of its own behind a password.",
)
@click.option("--flower-port", type=click.IntRange(1, 65_535), help="Port of Flower. [default: port + 2]")
@click.option("--json", "as_json", is_flag=True, help="Announce readiness as one line of JSON.")
def command(
    data_dir: Path | None,
    port: int | None,
    probe_port: int | None,
    broker: str | None,
    accept_weaker_durability: bool | None,
    take_over: bool | None,
    new_install: bool | None,
    new_database: bool | None,
    flower: bool | None,
    flower_port: int | None,
    as_json: bool,
) -> None:
    """Start the server: broker, writer, gate, pool worker and beat, under one supervisor.

    Stays in the foreground; Ctrl-C drains and stops everything.
    """
    if take_over and new_install:
        raise click.UsageError("--take-over keeps the id and --new-install makes another; choose one")
    server_libraries.need(*_SERVER)
    if flower:
        server_libraries.need("flower", extra="flower")
    overrides = {
        "data_dir": data_dir,
        "port": port,
        "probe_port": probe_port,
        "broker_url": broker,
        "accept_weaker_durability": accept_weaker_durability,
        "take_over": take_over,
        "new_install": new_install,
        "new_database": new_database,
        "flower": flower,
        "flower_port": flower_port,
    }
    try:
        settings = config.load(overrides)
    except Invalid as error:
        click.echo(f"memoryd: {error}", err=True)
        sys.exit(_BAD_SETTING)
    # The same process goes on as the supervisor: who started us has its pid, and signals reach it.
    argv = [sys.executable, "-P", "-m", "workers.supervisor", *(["--json"] if as_json else [])]
    environ = {**os.environ, **settings.environment(), "PYTHONDONTWRITEBYTECODE": "1"}
    sys.stdout.flush()
    os.execve(sys.executable, argv, environ)  # noqa: S606 — no shell wanted

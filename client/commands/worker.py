"""`memoryd worker`: become the supervisor of one pool worker, on any machine that reaches the gate and the broker."""

from __future__ import annotations

import hashlib
import os
import socket
import sys
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit

import click

from client import server_libraries
from client.settings import plain_url, state_dir_of
from memory_core import config, limits
from memory_core.domain.job import QUEUES
from memory_core.errors import Invalid

#: What the server extra brings that a worker needs; asked for without importing it.
_NEEDED = ("celery", "msgspec", "redis", "sqlalchemy")
#: Queues with kinds that read the data directory.
_READ_DATA = ("lint", "forget")
_BAD_SETTING = 78
_BROKER_SCHEMES = ("redis", "rediss", "valkey", "valkeys", "unix")


@click.command(
    epilog="""\b
Exit codes:
  0   stopped by a signal, its jobs handed back
  2   an option is wrong
  69  the server's libraries are not installed
  70  a fault of memoryd
  75  a worker with this state directory runs already (its process is named)
  78  the token, a queue or a setting is refused (the reason is named)"""
)
@click.option(
    "--queues", metavar="A,B", default=",".join(QUEUES), show_default=True, help="What it works for."
)
@click.option(
    "--broker", metavar="URL", help="The broker, as a user that may only ring. [or MEMORYD_BROKER_URL]"
)
@click.option(
    "--url", metavar="URL", help="The server, for example https://memory.example:49374. [or MEMORYD_GATE_URL]"
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A file with a token of scope pool. [or MEMORYD_POOL_TOKEN_FILE]",
)
@click.option(
    "--slots", type=click.IntRange(1, limits.POOL_SLOTS_MAX), help="Jobs of one queue at once. [default: 1]"
)
@click.option("--name", help="How jobs and logs name it. [default: this machine's name]")
@click.option(
    "--state-dir", type=click.Path(path_type=Path, file_okay=False), help="For its logs and temporary files."
)
@click.option("--json", "as_json", is_flag=True, help="Announce readiness as one line of JSON.")
def command(
    queues: str,
    broker: str | None,
    url: str | None,
    token_file: Path | None,
    slots: int | None,
    name: str | None,
    state_dir: Path | None,
    as_json: bool,
) -> None:
    """Work through the server's jobs on this machine: no data directory, no access to what others send.

    Stays in the foreground; Ctrl-C hands back what is not done and stops.
    """
    server_libraries.need(*_NEEDED)
    home = (state_dir or Path(state_dir_of(dict(os.environ))) / "worker").expanduser().absolute()
    wanted = tuple(part.strip() for part in queues.split(",") if part.strip())
    overrides = {
        "data_dir": home,
        "state_dir": "",
        "off_data_host": True,
        "broker_url": broker,
        "gate_url": plain_url(url) if url else None,
        "pool_token_file": str(token_file.expanduser().absolute()) if token_file else None,
        "pool_queues": wanted,
        "pool_slots": slots,
        "worker_name": name or _own_name(home),
    }
    try:
        settings = config.load(overrides)
    except Invalid as error:
        _refuse(str(error), _BAD_SETTING)
    for value, option, variable in (
        (settings.broker_url, "--broker", "MEMORYD_BROKER_URL"),
        (settings.gate_url, "--url", "MEMORYD_GATE_URL"),
        (settings.pool_token_file, "--token-file", "MEMORYD_POOL_TOKEN_FILE"),
    ):
        if not value:
            raise click.UsageError(
                f"a worker needs {option} (or {variable}); docs/operations.md says how to get it"
            )
    _check_broker(settings.broker_url)
    unknown = [queue for queue in wanted if queue not in QUEUES]
    if unknown or not wanted:
        raise click.UsageError(f"there is no queue {', '.join(unknown)!r}; there are: {', '.join(QUEUES)}")
    if not os.access(settings.pool_token_file, os.R_OK):
        _refuse(
            f"cannot read the token in {settings.pool_token_file}; on the server, make one with: "
            "memoryd tokens create --scope pool --name THIS-MACHINE",
            _BAD_SETTING,
        )
    _say_what_to_know(settings)
    # The same process goes on as the supervisor: who started us has its pid, and signals reach it.
    argv = [
        sys.executable,
        "-P",
        "-m",
        "workers.supervisor",
        "--only",
        "pool",
        *(["--json"] if as_json else []),
    ]
    environ = {**os.environ, **settings.environment(), "PYTHONDONTWRITEBYTECODE": "1"}
    sys.stdout.flush()
    os.execve(sys.executable, argv, environ)  # noqa: S606 — no shell wanted


def _check_broker(url: str) -> None:
    # Before anything starts: the libraries say it late and in a stack trace. The address may hold a password: not quoted.
    scheme, separator, _ = url.partition("://")
    if not separator or scheme.lower() not in _BROKER_SCHEMES:
        _refuse(
            f"--broker (or MEMORYD_BROKER_URL) must begin with one of {', '.join(f'{name}://' for name in _BROKER_SCHEMES)}",
            _BAD_SETTING,
        )


def _say_what_to_know(settings: config.Settings) -> None:
    reading = [queue for queue in settings.pool_queues if queue in _READ_DATA]
    if reading:
        click.echo(
            f"memoryd: no data directory here: jobs of {' and '.join(reading)} that read it are left to the server's own worker",
            err=True,
        )
    parts = urlsplit(settings.gate_url)
    if parts.scheme == "http" and parts.hostname not in ("localhost", "127.0.0.1", "::1"):
        click.echo(
            f"memoryd: {parts.hostname} is asked over plain http: token and jobs cross the network as they are",
            err=True,
        )


def _own_name(home: Path) -> str:
    """This machine's name, and a sign of the directory: several workers of one machine are told apart."""
    sign = hashlib.sha256(os.fsencode(home)).hexdigest()[:4]
    return f"{socket.gethostname()[:64]}-{sign}"


def _refuse(sentence: str, code: int) -> NoReturn:
    click.echo(f"memoryd: {sentence}", err=True)
    sys.exit(code)

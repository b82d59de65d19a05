"""`memoryd spool`: events of this machine's hooks that wait for the server, and those that it refused for good."""

from __future__ import annotations

import time
from typing import Any

import click

from client import detached
from client.output import confirm, emit, fail, json_option, table
from client.settings import load
from client.spool import Spool
from memory_core.errors import Invalid


@click.group()
def command() -> None:
    """Events that wait to be delivered, and refused ones: list, retry, discard."""


@command.command("list")
@json_option
def list_entries(as_json: bool) -> None:
    """List what waits and what was refused, oldest first. Contents are not shown."""
    spool = Spool(load().spool_dir)
    found = [*_waiting(spool), *_refused(spool)]
    rows = [(entry["name"], entry["state"], entry["when"], entry["reason"]) for entry in found]
    emit(
        {"directory": spool.directory, "entries": found},
        as_json=as_json,
        text=lambda: table(
            ("name", "state", "when", "reason"),
            rows,
            empty="Nothing waits, nothing was refused.",
            cut="reason",
        ),
    )


@command.command()
@click.argument("names", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Every refused event.")
@json_option
def retry(names: tuple[str, ...], everything: bool, as_json: bool) -> None:
    """Put refused events back and send them again, in the background. `memoryd hook --drain` does it here and now."""
    settings = load()
    spool = Spool(settings.spool_dir)
    chosen = _chosen(spool, names, everything=everything)
    try:
        for name in chosen:
            spool.take_back(name)
    except ValueError as error:
        fail(Invalid(str(error)), as_json=as_json)
    finally:
        # What was put back before one that cannot be is sent too. One that runs already looks again.
        if spool.names():
            detached.start(settings)
    emit(
        {"retried": chosen},
        as_json=as_json,
        text=lambda: click.echo(f"{len(chosen)} put back, and on the way to {settings.url}"),
    )


@command.command()
@click.argument("names", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Every refused event.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@json_option
def discard(names: tuple[str, ...], everything: bool, yes: bool, as_json: bool) -> None:
    """Throw refused events away for good."""
    spool = Spool(load().spool_dir)
    chosen = _chosen(spool, names, everything=everything)
    if chosen and not yes:
        for entry in _refused(spool):
            if entry["name"] in chosen:
                click.echo(f"{entry['name']}  {entry['reason']}", err=True)
        confirm(f"Their content is lost after this. Discard {len(chosen)}?")
    for name in chosen:
        spool.discard(name)
    emit({"discarded": chosen}, as_json=as_json, text=lambda: click.echo(f"{len(chosen)} discarded"))


def _chosen(spool: Spool, names: tuple[str, ...], *, everything: bool) -> list[str]:
    refused = spool.rejected()
    if bool(names) == everything:
        raise click.UsageError("name events of `memoryd spool list`, or say --all")
    unknown = [name for name in names if name not in refused]
    if unknown:
        raise click.UsageError(f"no refused event is called {unknown[0]}; see `memoryd spool list`")
    return list(names) or refused


def _waiting(spool: Spool) -> list[dict[str, Any]]:
    return [{"name": name, "state": "waiting", "when": _when(name), "reason": ""} for name in spool.names()]


def _refused(spool: Spool) -> list[dict[str, Any]]:
    return [
        {"name": name, "state": "refused", "when": _when(name), "reason": spool.reason(name)}
        for name in spool.rejected()
    ]


def _when(name: str) -> str:
    """The time in an entry's name, RFC 3339; empty for a file that is no entry."""
    stamp = name.partition("-")[0]
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(stamp) / 1000)) if stamp.isdigit() else ""

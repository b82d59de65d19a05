"""What the three installing commands share: options, preview or apply, and the report. No command."""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import click

from client.changes import FileChange, apply, preview
from client.install import Connection, installers_named, secrets_in
from client.installers import Installer, Place
from memory_core.clock import SystemClock
from memory_core.errors import CoreError

Planner = Callable[[Place, list[Installer]], list[FileChange]]


def shared_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--apply`, `--diff` and `--json`."""
    function = click.option("--diff", "with_diff", is_flag=True, help="Show each change line by line.")(
        function
    )
    function = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")(function)
    return click.option("--apply", "is_applied", is_flag=True, help="Write the changes.")(function)


def connection_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--url`, `--token-file` and `--token-stdin`, as one `Connection`."""

    @functools.wraps(function)
    def with_connection(
        *args: Any, url: str | None, token_file: Path | None, token_stdin: bool, **kwargs: Any
    ) -> Any:
        token = sys.stdin.read().strip() if token_stdin else None
        connection = Connection(url=url, token=token, token_file=token_file)
        return function(*args, connection=connection, **kwargs)

    for option in (
        click.option(
            "--token-stdin", is_flag=True, help="Read the token from standard input (remote servers)."
        ),
        click.option(
            "--token-file",
            type=click.Path(path_type=Path),
            help="File that holds the token. Default: that of the local server.",
        ),
        click.option("--url", help="The server. Default: as installed before, else http://127.0.0.1:49374."),
    ):
        option(with_connection)
    return with_connection


def run(
    planner: Planner,
    clients: Sequence[str],
    *,
    is_applied: bool,
    as_json: bool,
    with_diff: bool = False,
    with_notes: bool = False,
) -> None:
    """Plan, then show or apply; a `CoreError` becomes one sentence and exit code 1."""
    try:
        place = Place(home=Path.home(), environ=dict(os.environ))
        chosen = installers_named(clients)
        changes = planner(place, chosen)
        backups = apply(changes, now_us=SystemClock().now_us()) if is_applied else []
    except (CoreError, OSError) as error:
        _fail(error, as_json=as_json)
    notes = [note for installer in chosen for note in installer.notes] if with_notes else []
    if as_json:
        click.echo(json.dumps(_report(changes, backups, notes, is_applied=is_applied), indent=2))
    else:
        _tell(changes, backups, notes, is_applied=is_applied, with_diff=with_diff)


def _report(
    changes: list[FileChange], backups: list[Path], notes: list[str], *, is_applied: bool
) -> dict[str, Any]:
    return {
        "applied": is_applied,
        "changes": [{"path": str(change.path), "action": change.action} for change in changes],
        "backups": [str(backup) for backup in backups],
        "notes": notes,
    }


def _tell(
    changes: list[FileChange],
    backups: list[Path],
    notes: list[str],
    *,
    is_applied: bool,
    with_diff: bool,
) -> None:
    needed = [change for change in changes if change.is_needed]
    if not needed:
        click.echo("Nothing to change.")
        return
    for change in needed:
        click.echo(f"{change.action:7} {change.path}  ({change.size})")
    if with_diff:
        click.echo("\n" + preview(changes, hide=secrets_in(changes)), nl=False)
    if not is_applied:
        how = "" if with_diff else " --diff shows each line."
        click.echo(f"\nNothing was written.{how} Run the command again with --apply.")
        return
    for backup in backups:
        click.echo(f"backup  {backup}")
    for note in notes:
        click.echo(note)


def _fail(error: Exception, *, as_json: bool) -> NoReturn:
    code = getattr(error, "code", "os_error")
    if as_json:
        click.echo(json.dumps({"error": {"code": code, "message": str(error)}}), err=True)
    else:
        click.echo(f"memoryd: {error}", err=True)
    sys.exit(1)

"""Starting a rebuild of the wiki or its tables, and watching it: what `memoryd reindex` and `memoryd heal` share."""

from __future__ import annotations

import time
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from client.server import Server, ServerError

_POLL_SECONDS = 0.5
#: A restart of the server on the way is waited for.
_AWAY_SECONDS = 60.0
_ENTERED = ("written", "seen", "moved", "gone", "rewritten")


def start(server: Server, kind: str, **flags: bool) -> dict[str, Any]:
    """Ask for the task; what the server answered."""
    given = {name: value for name, value in flags.items() if value}
    return server.request("POST", f"/api/v1/wiki/{kind}", body=given)[0]


def follow(server: Server, *, total: int, quiet: bool) -> dict[str, Any]:
    """The state of the wiki when the task is done. Ctrl-C ends the watching, not the task."""
    console = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        disable=quiet or not console.is_terminal,
    )
    with bar:
        line = bar.add_task("starting", total=total or None)
        away_since: float | None = None
        while True:
            try:
                state = server.get("/api/v1/wiki")
                away_since = None
            except ServerError as error:
                away_since = away_since or time.monotonic()
                if error.exit_code != 3 or time.monotonic() - away_since > _AWAY_SECONDS:
                    raise
                time.sleep(_POLL_SECONDS)
                continue
            task = state["task"]
            done = sum(task["counts"].get(name, 0) for name in _ENTERED)
            bar.update(
                line,
                description=task["kind"],
                completed=done,
                total=max(total, done, state.get("files") or 0),
            )
            if task["finished_at"] is not None:
                return state
            time.sleep(_POLL_SECONDS)


def counts_in_words(task: dict[str, Any]) -> str:
    names = {
        "adopted": "projects",
        "written": "pages taken in",
        "earlier_versions": "earlier versions from git",
        "moved": "renamed",
        "rewritten": "files written again",
        "gone": "pages deleted",
    }
    said = [f"{task['counts'][name]} {words}" for name, words in names.items() if task["counts"].get(name)]
    return ", ".join(said) or "nothing was to be done"


def tell_troubles(state: dict[str, Any]) -> None:
    """What was left as it is, on stderr."""
    for row in state.get("troubles", []):
        click.echo(f"left alone: {row['file']}: {row['trouble']}", err=True)
    for directory, why in state.get("strangers", {}).items():
        click.echo(f"left alone: {directory}: {why}", err=True)

"""How far an import is: a bar on a terminal, a line for each step elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


class Screen:
    """Steps, one after the other, on standard error."""

    def __init__(self, *, quiet: bool) -> None:
        self._console = Console(stderr=True)
        self._quiet = quiet

    @contextmanager
    def step(self, said: str, total: int | None = None) -> Generator[Callable[[], None]]:
        """A step of `total` pieces (None: nobody knows); call what it gives after each of them."""
        if self._quiet:
            yield lambda: None
            return
        if not self._console.is_terminal:
            click.echo(said if total is None else f"{said}: {total}", err=True)
            yield lambda: None
            return
        bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
        )
        with bar:
            line = bar.add_task(said, total=total)
            yield lambda: bar.advance(line)

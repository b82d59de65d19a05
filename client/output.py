"""What commands print: JSON where asked for, rich tables on a terminal, plain text in a pipe."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

import click
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from memory_core.domain.recalled import unfenced

#: Adds `--json` to a command, as the parameter `as_json`.
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")


def scope_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds `--workspace` and `--project`."""
    function = click.option(
        "--project", help="Project; default: this directory's, else the one that is being worked on."
    )(function)
    return click.option("--workspace", help="Workspace of the project; default: 'default'.")(function)


def list_scope_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same for a list, which is of all projects unless one is named."""
    function = click.option("--project", help="Only this project; default: all.")(function)
    return click.option("--workspace", help="Workspace of the project; default: 'default'.")(function)


def emit(value: Any, *, as_json: bool, text: Callable[[], None]) -> None:
    """Print `value` as JSON, or call `text` to print it for people."""
    if as_json:
        click.echo(json.dumps(value, ensure_ascii=False, indent=2))
    else:
        text()


def fail(error: Exception, *, as_json: bool) -> NoReturn:
    """Say on stderr what went wrong and end with the error's exit code."""
    code = getattr(error, "code", "error")
    if as_json:
        click.echo(json.dumps({"error": {"code": code, "message": str(error)}}, ensure_ascii=False), err=True)
    else:
        click.echo(f"memoryd: {visible(str(error))}", err=True)
    sys.exit(getattr(error, "exit_code", 1))


def table(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], *, empty: str, cut: str | None = None
) -> None:
    """Rows as a table on a terminal, tab-separated in a pipe; `empty` when there are none.

    On a terminal the column `cut` gives way where the width does not suffice, so that the others, an id to be copied
    above all, stay on one line.
    """
    cells = [[visible("" if cell is None else str(cell)) for cell in row] for row in rows]
    if not cells:
        click.echo(empty)
        return
    console = Console()
    if not console.is_terminal:
        for row in cells:
            click.echo("\t".join(cell.replace("\t", " ").replace("\n", " ") for cell in row))
        return
    drawn = Table(box=None, header_style="bold", pad_edge=False)
    for column in columns:
        gives_way = cut in (None, column)
        drawn.add_column(
            column,
            overflow="fold" if cut is None else "ellipsis",
            no_wrap=cut is not None,
            min_width=None if gives_way else _width(columns.index(column), column, cells),
        )
    for row in cells:
        drawn.add_row(*(escape(cell) for cell in row))
    console.print(drawn, crop=False)


def _width(index: int, column: str, cells: list[list[str]]) -> int:
    return max(cell_len(column), *(cell_len(row[index]) for row in cells))


def shortened(text: str, max_chars: int) -> str:
    """On one line, with an ellipsis where something is left out."""
    flat = " ".join(text.split())
    return flat if len(flat) <= max_chars else flat[: max_chars - 1].rstrip() + "…"


def visible(text: str) -> str:
    """Text that cannot drive the terminal: control and bidirectional characters are shown as `\\uXXXX`."""
    return "".join(c if c in "\n\t" or not _drives(c) else f"\\u{ord(c):04x}" for c in text)


def marked(snippet: str) -> str:
    """A hit's snippet on one line, what matched in bold (without colours in a pipe)."""
    flat = " ".join(visible(unfenced(snippet)).split())
    return flat.replace("<mark>", click.style("", bold=True, reset=False)).replace("</mark>", click.style(""))


def _drives(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co") and character != "\u200d"

"""What commands print: JSON where asked for, rich tables on a terminal, plain text in a pipe."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

import click
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from memory_core.domain.recalled import NOTICE, unfenced

#: What is left of the column that gives way.
_CUT_MIN_CHARS = 12

#: By the code of an error that knows no exit code itself.
_EXIT_CODES = {"unavailable": 3, "unknown": 3, "forbidden": 4}

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
    """Print `value` as JSON, or call `text` to print it for people.

    JSON is for programs: the fence around recalled text goes, what it says of the source is in fields of its own.
    """
    if as_json:
        click.echo(json.dumps(_bare(value), ensure_ascii=False, indent=2))
    else:
        text()


def _bare(value: Any) -> Any:
    if isinstance(value, str):
        bare = unfenced(value)
        # The end marker stands on a line of its own.
        return bare if bare == value else bare.removesuffix("\n")
    if isinstance(value, dict):
        return {name: _bare(item) for name, item in value.items() if (name, item) != ("notice", NOTICE)}
    return [_bare(item) for item in value] if isinstance(value, list | tuple) else value


def confirm(question: str) -> None:
    """Ask on stderr; a no ends the command with nothing done, and so does a standard input that cannot answer."""
    try:
        is_yes = click.confirm(question, err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        raise click.UsageError("nobody is there to answer; say --yes to go on without being asked") from None
    if not is_yes:
        raise click.Abort


def fail(error: Exception, *, as_json: bool) -> NoReturn:
    """Say on stderr what went wrong and end with the error's exit code."""
    code = getattr(error, "code", "error")
    if as_json:
        click.echo(json.dumps({"error": {"code": code, "message": str(error)}}, ensure_ascii=False), err=True)
    else:
        click.echo(f"memoryd: {visible(str(error))}", err=True)
    sys.exit(getattr(error, "exit_code", _EXIT_CODES.get(code, 1)))


def table(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], *, empty: str, cut: str | None = None
) -> None:
    """Rows as a table on a terminal, tab-separated in a pipe; `empty` when there are none.

    On a terminal the column `cut` gives way where the width does not suffice, so that the others, an id to be copied
    above all, stay on one line.
    """
    cells = [[inline("" if cell is None else str(cell)) for cell in row] for row in rows]
    if not cells:
        click.echo(empty)
        return
    console = Console()
    if not console.is_terminal:
        for row in cells:
            click.echo("\t".join(row))
        return
    if cut is not None:
        _lines(columns, cells, cut, console.width)
        return
    drawn = Table(box=None, header_style="bold", pad_edge=False)
    for column in columns:
        drawn.add_column(column, overflow="fold")
    for row in cells:
        drawn.add_row(*(escape(cell) for cell in row))
    console.print(drawn)


def _lines(columns: Sequence[str], cells: list[list[str]], cut: str, width: int) -> None:
    """One line a row. By hand: rich leaves whole columns out of a table that is too wide; a terminal breaks the line."""
    widths = [max(cell_len(text) for text in texts) for texts in zip(columns, *cells, strict=True)]
    index = columns.index(cut)
    gaps = 2 * (len(columns) - 1)
    room = max(width - sum(widths) + widths[index] - gaps, _CUT_MIN_CHARS)
    widths[index] = min(widths[index], room)
    for row in ([*columns], *cells):
        if cell_len(row[index]) > room:
            row[index] = set_cell_size(row[index], room - 1).rstrip() + "…"
        line = "  ".join(set_cell_size(text, size) for text, size in zip(row, widths, strict=True)).rstrip()
        click.secho(line, bold=row == [*columns])


def shortened(text: str, max_chars: int) -> str:
    """On one line, with an ellipsis where something is left out."""
    flat = " ".join(text.split())
    return flat if len(flat) <= max_chars else flat[: max_chars - 1].rstrip() + "…"


def visible(text: str) -> str:
    """Text that cannot drive the terminal: control and bidirectional characters are shown as `\\uXXXX`."""
    return "".join(c if c in "\n\t" or not _drives(c) else f"\\u{ord(c):04x}" for c in text)


def inline(text: str) -> str:
    """As `visible`, for what stands inside a line of ours: a title or key of somebody else's begins no line of its own."""
    return visible(text).replace("\n", " ").replace("\t", " ")


def marked(snippet: str) -> str:
    """A hit's snippet on one line, what matched in bold (without colours in a pipe)."""
    flat = " ".join(visible(unfenced(snippet)).split())
    return flat.replace("<mark>", click.style("", bold=True, reset=False)).replace("</mark>", click.style(""))


def _drives(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co") and character != "\u200d"

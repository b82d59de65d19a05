"""The command line of `scripts/bench`."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from scripts.bench_parts import machine, report
from scripts.bench_parts.figures import Result, shown
from scripts.bench_parts.parts import Bench, parts
from scripts.bench_parts.sizes import FULL, QUICK, TINY, Sizes

for _module in (
    "ingest",
    "drain",
    "visible",
    "mcp_write",
    "jobs",
    "durable",
    "searching",
    "scale",
    "wiki",
    "memory",
    "start",
):
    import_module(
        f"scripts.bench_parts.{_module}"
    )  # parts register themselves, in the order in which they run
_SIZES = {"full": FULL, "quick": QUICK, "tiny": TINY}


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("names", metavar="[PART]…", nargs=-1, type=click.Choice(parts.names()))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of a table.")
@click.option("--rounds", type=click.IntRange(1, 50), help="Rounds whose median counts.")
@click.option(
    "--quick", "size", flag_value="quick", help="Smaller sizes, for development: its figures do not count."
)
@click.option("--tiny", "size", flag_value="tiny", hidden=True)
@click.option("--full", "size", flag_value="full", default=True, hidden=True)
@click.option(
    "--directory",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(tempfile.gettempdir()),
    show_default=True,
    help="Where the data directories lie: a real disk, or syncing costs nothing.",
)
@click.option("--write-docs", is_flag=True, help="Put the figures into docs/performance.md.")
@click.option("--keep", is_flag=True, help="Leave the data directories behind.")
def main(
    names: tuple[str, ...],
    as_json: bool,
    rounds: int | None,
    size: str,
    directory: Path,
    write_docs: bool,
    keep: bool,
) -> None:
    """Measure memoryd against its targets: all parts, or those named."""
    sizes = _SIZES[size] if rounds is None else replace(_SIZES[size], rounds=rounds)
    place = Path(tempfile.mkdtemp(prefix="memoryd-bench-", dir=directory))
    facts = machine.facts(place)
    results: list[Result] = []
    try:
        with _telling(as_json) as (say, tell):
            for name in names or parts.names():
                results.append(_measure(name, sizes, place, say))
                tell(results[-1])
    finally:
        if keep:
            click.echo(f"kept: {place}", err=True)
        else:
            shutil.rmtree(place, ignore_errors=True)
    facts["load average after"] = machine.load_average()
    if as_json:
        document = {"size": size, "machine": facts, "parts": [result.as_json() for result in results]}
        click.echo(json.dumps(document, indent=2))
    else:
        for name, value in facts.items():
            click.echo(f"{name}: {value}")
    if write_docs:
        report.write(results, facts, size)
    sys.exit(0 if all(result.is_good for result in results) else 1)


def _measure(name: str, sizes: Sizes, place: Path, say: Callable[[str], None]) -> Result:
    own = place / name
    own.mkdir()
    say(name)
    return parts.get(name)(Bench(sizes=sizes, directory=own, say=say))


@contextmanager
def _telling(is_silent: bool) -> Generator[tuple[Callable[[str], None], Callable[[Result], None]]]:
    """A line that moves on a terminal, plain lines when piped; nothing beside JSON."""
    console = Console(stderr=is_silent, width=None if sys.stdout.isatty() else 120)

    def tell(result: Result) -> None:
        console.print(_table(result), *_words(result), sep="\n")

    if is_silent:
        yield (lambda _: None), (lambda _: None)
    elif not sys.stdout.isatty():
        yield (lambda _: None), tell
    else:
        with console.status("…") as status:
            yield status.update, tell


def _table(result: Result) -> Table:
    table = Table(title=result.part, title_justify="left", title_style="bold")
    for name in ("what", "value", "unit", "target", "verdict", "rounds"):
        table.add_column(name, justify="right" if name in ("value", "target") else "left")
    for figure in result.figures:
        colour = {"ok": "green", "MISSED": "bold red"}.get(figure.verdict, "")
        table.add_row(
            figure.name,
            shown(figure.value),
            figure.unit,
            str(figure.target or ""),
            f"[{colour}]{figure.verdict}[/]" if colour else "",
            " ".join(shown(value) for value in figure.rounds),
        )
    return table


def _words(result: Result) -> list[str]:
    words = [f"checked: {line}" for line in result.verified]
    words += [f"WRONG: {line}" for line in result.complaints]
    return [*words, result.appendix] if result.appendix else words


if __name__ == "__main__":
    main()

"""`memoryd search`: find pages (and, where no page matches, raw observations)."""

from __future__ import annotations

from typing import Any

import click

from client.output import emit, inline, json_option, marked, scope_options, visible
from client.server import Server
from client.settings import load


@click.command()
@click.argument("query", nargs=-1, required=True)
@click.option("-n", "--limit", type=click.IntRange(1, 100), default=10, show_default=True)
@click.option("--everywhere", is_flag=True, help="Search all projects.")
@click.option("--explain", is_flag=True, help="Show how each hit was found.")
@scope_options
@json_option
def command(
    query: tuple[str, ...],
    limit: int,
    everywhere: bool,
    explain: bool,
    workspace: str | None,
    project: str | None,
    as_json: bool,
) -> None:
    """Search the memory for QUERY. No character in it is special."""
    text = " ".join(query)
    if not text.strip():
        raise click.UsageError("QUERY is empty; say what to look for, in words that the page would use")
    answer = Server(load()).tool(
        "memory_query",
        query=text,
        limit=limit,
        workspace=workspace,
        project=project,
        **({"global": True} if everywhere else {}),
        explain=explain or None,
    )
    emit(answer, as_json=as_json, text=lambda: _print(answer))


def print_hit(hit: dict[str, Any]) -> None:
    """Its title, where and when, how it was found where that was asked for, and its snippet."""
    click.secho(f"{inline(hit.get('title') or hit['path'])}", bold=True)
    click.echo(f"  {inline(_where(hit))}  {hit.get('date', '')}")
    _explain(hit)
    click.echo(f"  {marked(hit.get('snippet', ''))}")


def _where(hit: dict[str, Any]) -> str:
    """The page of a hit; of a turn who said it, and its session where that has no page yet."""
    scope = "/".join(filter(None, (hit.get("workspace"), hit.get("project"))))
    place = f"{scope}:{hit['path']}" if hit.get("path") else f"{scope}  session {hit.get('session_id')}"
    return f"{place}  {hit['speaker']}" if hit.get("speaker") else place


def _explain(hit: dict[str, Any]) -> None:
    """How the hit was found, where that was asked for: a line for the whole, and one for each stream that found it."""
    details = dict(hit.get("score_details") or {})
    streams = details.pop("streams", {})
    if details:
        click.echo(f"  score {hit.get('score')}: {visible(_named(details))}")
    for name, found in streams.items():
        click.echo(f"    {visible(f'{name}: {_named(found)}')}")


def _named(values: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())


def _print(answer: dict[str, Any]) -> None:
    hits = answer.get("hits", [])
    for hit in hits:
        print_hit(hit)
        click.echo()
    raw = answer.get("raw_hits", [])
    if raw and not hits:
        click.echo("No page matches; these observations do:\n")
    for hit in raw:
        click.echo(f"  {hit.get('kind', '')}  {inline(hit.get('title', ''))}")
        click.echo(f"  {marked(hit.get('snippet', ''))}\n")
    if not hits and not raw:
        click.echo(answer.get("hint") or "Nothing found.")

"""`memoryd briefing`: where a project stands."""

from __future__ import annotations

from typing import Any

import click

from client.output import emit, inline, json_option, scope_options, visible
from client.server import Server
from client.settings import load
from memory_core.domain.recalled import unfenced

_SECTIONS = (("rules", "Rules"), ("slots", "Slots"), ("pinned", "Pinned"))
_NEIGHBOURS = (
    ("cross_project_dependencies", "Links to"),
    ("cross_project_dependents", "Linked from"),
)


@click.command()
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(1, 100),
    default=10,
    show_default=True,
    help="Recently changed pages.",
)
@scope_options
@json_option
def command(limit: int, workspace: str | None, project: str | None, as_json: bool) -> None:
    """Say where a project stands: its rules, what changed, how much went on."""
    answer = Server(load()).tool(
        "memory_briefing", recent_pages_limit=limit, workspace=workspace, project=project
    )
    emit(answer, as_json=as_json, text=lambda: _print(answer))


def _print(answer: dict[str, Any]) -> None:
    click.secho(visible(f"{answer['workspace']}/{answer['project']}"), bold=True)
    counts = answer["counts"]
    click.echo(
        f"{counts['pages']} pages, {counts['sessions']} sessions ({counts['sessions_open']} open),"
        f" {counts['observations']} observations; last {answer.get('last_observation_at') or 'never'}"
    )
    for name in ("activity_7d", "activity_30d"):
        past = answer[name]
        click.echo(
            f"{past['days']} days: {past['sessions']} sessions, {past['observations']} observations,"
            f" {past['pages_updated']} pages changed"
        )
    click.echo(f"Handoffs waiting: {answer['pending_handoff_count']}")
    for key, title in _NEIGHBOURS:
        if tied := answer.get(key):
            names = ", ".join(f"{one['workspace']}/{one['project']} ({one['links']})" for one in tied)
            click.echo(visible(f"{title}: {names}"))
    for key, title in _SECTIONS:
        _print_pages(title, answer.get(key, []))
    _print_list("Called stale or wrong", answer.get("flagged_pages", []), "signal", "reason")
    _print_list("Changed last", answer.get("recent_pages", []), "updated_at")
    if "hint" in answer:
        click.echo(f"\n{answer['hint']}")


def _print_pages(title: str, pages: list[dict[str, Any]]) -> None:
    for page in pages:
        click.secho(f"\n{title}: {inline(page['title'])} ({inline(page['path'])})", bold=True)
        if text := page.get("text"):
            click.echo(visible(unfenced(text).strip()))
        if page["is_cut"]:
            click.echo("…")


def _print_list(title: str, pages: list[dict[str, Any]], *facts: str) -> None:
    if pages:
        click.secho(f"\n{title}", bold=True)
    for page in pages:
        told = "  ".join(visible(page[fact]) for fact in facts if page.get(fact))
        click.echo(f"  {inline(page['path'])}  {inline(page['title'])}  {told}")

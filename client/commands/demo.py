"""`memoryd demo`: the proof in half a minute."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from rich.console import Console
from rich.markdown import Markdown
from rich.progress import Progress

from client import demo
from client.output import emit, inline, json_option, marked, visible
from client.settings import load
from memory_core.domain.recalled import unfenced


@click.command()
@json_option
def command(as_json: bool) -> None:
    """Feed three recorded sessions of two agents through the real hooks, then search, then hand over.

    The events go into the project `memoryd-demo` of the running server.
    """
    console = Console(stderr=as_json)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("three sessions, one process per hook", total=len(demo.recording(Path())))
        proof = demo.run(load(), lambda step: progress.update(task, advance=1, description=_told(step)))
    answer = {
        "events": proof.events,
        "seconds": round(proof.seconds, 2),
        "question": demo.QUESTION,
        "search": proof.search,
        "handoff": proof.handoff,
    }
    emit(answer, as_json=as_json, text=lambda: _show(console, proof))
    if not proof.search.get("hits") or not proof.handoff:
        click.echo("memoryd: the demo did not find what was said; see: memoryd doctor", err=True)
        sys.exit(1)


def _told(step: demo.Step) -> str:
    return f"{step.client:<12} {step.event}"


def _show(console: Console, proof: demo.Proof) -> None:
    click.echo(f"{proof.events} hook events of two agents, kept and indexed in {proof.seconds:.1f} s.\n")
    click.echo(f"$ memoryd search --project {demo.PROJECT} {demo.QUESTION!r}\n")
    for hit in proof.search.get("hits", []):
        click.secho(f"  {inline(hit['title'])}", bold=True)
        click.echo(f"    {inline(hit['path'])}")
        click.echo(f"    {marked(hit.get('snippet', ''))}\n")
    click.echo("A new Codex session starts in the same directory. It is handed:\n")
    if console.is_terminal:
        console.print(Markdown(visible(unfenced(proof.handoff))))
    else:
        click.echo(visible(unfenced(proof.handoff)))

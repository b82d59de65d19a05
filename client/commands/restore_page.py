"""`memoryd restore-page`: bring an older state of a page back, after showing what would change."""

from __future__ import annotations

import difflib
from typing import Any

import click

from client.output import confirm, emit, json_option, scope_options, visible
from client.reference import placed
from client.server import Server
from client.settings import load


@click.command()
@click.argument("path")
@click.option(
    "--from",
    "source",
    required=True,
    help="A version id, a checkpoint id (memoryd checkpoints), or a commit.",
)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@scope_options
@json_option
def command(
    path: str, source: str, yes: bool, workspace: str | None, project: str | None, as_json: bool
) -> None:
    """Make an older state of the page at PATH its newest version. What is there now stays in its history."""
    server = Server(load())
    path, workspace, project = placed(path, workspace, project)
    given = {"path": path, "from": source, "workspace": workspace, "project": project}
    old = server.get("/api/v1/pages/restore", **given)
    if not yes:
        click.echo(_difference(old), err=True)
        confirm(f"Restore {visible(old['path'])} from {old['origin']}?")
    body = {key: value for key, value in given.items() if value is not None}
    if old["base_version"] is not None:
        # What was shown is what is replaced, or nothing is.
        body["base_version"] = old["base_version"]
    result = server.request("POST", "/api/v1/pages/restore", body=body)[0]
    emit(result, as_json=as_json, text=lambda: click.echo(_sentence(result, old)))


def _difference(old: dict[str, Any]) -> str:
    now = old["current"]
    lines = difflib.unified_diff(
        (now or "").splitlines(),
        old["content"].splitlines(),
        fromfile=f"{old['path']} (now)" if now is not None else "(deleted)",
        tofile=f"{old['path']} ({old['origin']})",
        lineterm="",
    )
    return visible("\n".join(lines)) or "It says exactly that already."


def _sentence(result: dict[str, Any], old: dict[str, Any]) -> str:
    if result.get("status") == "pending":
        return f"Accepted, not yet applied: command {result['command_id']}"
    if not result["changed"]:
        return f"{visible(result['path'])} says exactly that already"
    done = f"Restored {visible(result['path'])} from {old['origin']}; before: checkpoint {result['pre_checkpoint']}"
    return f"{done}. {visible(result['note'])}" if result.get("note") else done

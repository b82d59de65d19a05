"""`memoryd commit`: commit the wiki now instead of a few seconds later."""

from __future__ import annotations

import time
from typing import Any

import click

from client.output import emit, json_option
from client.server import Server
from client.settings import load

_WAIT_SECONDS = 10.0
_PAUSE_SECONDS = 0.2


@click.command()
@click.option("-m", "--message", default="", help="The message of the commit; without it, one is made.")
@click.option("--no-wait", is_flag=True, help="Do not wait until git has it.")
@json_option
def command(message: str, no_wait: bool, as_json: bool) -> None:
    """Commit the pages as they are now, as a checkpoint. Files that are no pages are left alone."""
    server = Server(load())
    result = server.request("POST", "/api/v1/checkpoints", body={"message": message})[0]
    if not no_wait and result.get("commit") is None and result.get("checkpoint"):
        result["commit"] = _wait(server, result["checkpoint"])
        if result["commit"] is None:
            result["waits"] = _why(server)
    emit(result, as_json=as_json, text=lambda: click.echo(_sentence(result)))


def _wait(server: Server, checkpoint: str) -> str | None:
    end = time.monotonic() + _WAIT_SECONDS
    while time.monotonic() < end:
        for entry in server.get("/api/v1/checkpoints", limit=100):
            if checkpoint in entry["checkpoints"] and entry["commit"]:
                return entry["commit"]
        time.sleep(_PAUSE_SECONDS)
    return None


def _why(server: Server) -> str:
    """What the history waits for, as the server says it."""
    said = server.get("/api/v1/status").get("git", {})
    return ": ".join(filter(None, (said.get("state", "unknown"), said.get("reason", ""))))


def _sentence(result: dict[str, Any]) -> str:
    if result.get("status") == "pending":
        return f"Accepted, not yet applied: command {result['command_id']}"
    if result["checkpoint"] is None:
        return "There is no page yet; nothing to commit"
    if result["commit"] is None:
        waits = f"; the history is {result['waits']}" if result.get("waits") else ""
        return f"Taken; its commit follows (checkpoint {result['checkpoint']}){waits}"
    commit = result["commit"][:18]
    said = "Committed" if result.get("changed") else "Nothing changed since"
    return f"{said} {commit} (checkpoint {result['checkpoint']})"

"""`memoryd tokens`: give access tokens out, look at them, take them back."""

from __future__ import annotations

import os
from pathlib import Path

import click

from client.output import confirm, emit, json_option, table
from client.server import Server, ServerError
from client.settings import load
from memory_core.domain.token import SCOPES


@click.group()
def command() -> None:
    """Access tokens: create, list, revoke. All of it needs a token of scope admin."""


@command.command()
@click.option("--scope", type=click.Choice(SCOPES), required=True, help="What it may do.")
@click.option("--name", required=True, help="To tell it from others, for example the machine it is for.")
@click.option("--principal", help="Whose it is. [default: owner; for the scope pool: pool]")
@click.option("--expires-days", type=click.IntRange(1), help="After so many days it is worth nothing.")
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), help="Write it into this new file (0600)."
)
@json_option
def create(
    scope: str, name: str, principal: str | None, expires_days: int | None, out: Path | None, as_json: bool
) -> None:
    """Make a token. It is shown once, and kept by nobody but you."""
    descriptor = _new_file(out) if out is not None else None
    wanted = {"scope": scope, "name": name, "principal": principal, "expires_days": expires_days}
    try:
        made = Server(load()).request("POST", "/api/v1/tokens", body=wanted)[0]
    except ServerError:
        if out is not None and descriptor is not None:
            os.close(descriptor)
            out.unlink(missing_ok=True)
        raise
    if descriptor is not None:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(made.pop("token") + "\n")
        made["file"] = str(out)

    def say() -> None:
        click.echo(made.get("token") or f"{name}: in {out}")
        if made.get("status") == "pending":
            click.echo("memoryd: the writer has not taken it yet; it counts when it has", err=True)

    emit(made, as_json=as_json, text=say)


@command.command("list")
@json_option
def list_tokens(as_json: bool) -> None:
    """List tokens, also those that count no more; never their secrets."""
    found = Server(load()).get("/api/v1/tokens")
    columns = ("id", "name", "scope", "principal", "state", "created", "expires")
    rows = [
        (
            t["id"],
            t["name"],
            t["scope"],
            t["principal"],
            t["state"],
            t["created_at"][:10],
            (t["expires_at"] or "")[:10],
        )
        for t in found
    ]
    emit(found, as_json=as_json, text=lambda: table(columns, rows, empty="No token.", cut="name"))


@command.command()
@click.argument("token")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@json_option
def revoke(token: str, yes: bool, as_json: bool) -> None:
    """Let the token with this id or name in no more; within seconds, and for good."""
    server = Server(load())
    found = [
        t for t in server.get("/api/v1/tokens") if token in (t["id"], t["name"]) and t["state"] == "live"
    ]
    if not found:
        raise ServerError(
            f"there is no token {token!r} that counts; see: memoryd tokens list", code="not_found", status=404
        )
    if not yes:
        shown = found[0]
        click.echo(
            f"{shown['name']} ({shown['id']}), scope {shown['scope']}, of {shown['principal']}", err=True
        )
        confirm("Whoever uses it is let in no more. Revoke it?")
    answer = server.request("POST", f"/api/v1/tokens/{found[0]['id']}/revoke", body={})[0]
    emit(answer, as_json=as_json, text=lambda: click.echo(f"{token}: {answer.get('status', 'revoked')}"))


def _new_file(path: Path) -> int:
    """Made before the token is, so that none is lost to a file that cannot be written."""
    try:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise click.ClickException(f"cannot make {path}: {error.strerror}") from error

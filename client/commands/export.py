"""`memoryd export`: the durable sessions and the knowledge of a directory or project, as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import click

from client import exports
from client.here import Here, here, here_options
from client.output import emit, json_option, visible
from client.server import Server
from client.settings import load
from memory_core import limits

_KNOWLEDGE = "/api/v1/knowledge"
_SCHEMA_VERSION = 1


@click.command()
@click.option("-o", "--output", type=click.Path(), help="A new file; default: standard output.")
@here_options
@json_option
def command(output: str | None, as_json: bool, **place: str | None) -> None:
    """Write what is kept of this directory out as JSON: durable sessions with their events, and what is known now.

    With --json and --output it says as JSON what was written; the export itself is JSON anyway.
    """
    where = here(**place)
    server = Server(load())
    pieces = _pieces(server, where, exports.begun(_sessions(server, where)))
    exports.write(pieces, output)
    if output is not None:
        said = f"Wrote {visible(output)}: {where.said}"
        emit({"output": output}, as_json=as_json, text=lambda: click.echo(said))


def _sessions(server: Server, where: Here) -> Iterator[dict[str, Any]]:
    return server.listed(exports.SESSIONS, limit=None, page=limits.DURABLE_SESSIONS_PAGE_MAX, **where.query)


def _pieces(server: Server, where: Here, sessions: Iterator[dict[str, Any]]) -> Iterator[str]:
    yield f'{{"schema_version": {_SCHEMA_VERSION}, "workspace": {json.dumps(where.body)}, "sessions": ['
    for number, session in enumerate(sessions):
        yield ", " if number else ""
        yield from exports.session_pieces(server, session["id"])
    yield '], "knowledge": '
    yield from exports.array_pieces(_known(server, where))
    yield "}"


def _known(server: Server, where: Here) -> Iterator[str]:
    for entry in server.listed(_KNOWLEDGE, limit=None, page=limits.KNOWLEDGE_LIST_MAX, **where.query):
        path = f"{_KNOWLEDGE}/{quote(entry['id'], safe='')}/history"
        versions = list(server.listed(path, limit=None, page=limits.KNOWLEDGE_LIST_MAX))
        yield json.dumps({"knowledge": entry, "versions": versions}, ensure_ascii=False)

"""`memoryd knowledge`: what is known in a directory or project, entry by entry, and what a person does about it."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any

import click

from client.here import Here, here, here_options
from client.output import confirm, emit, inline, json_option, shortened, table, visible
from client.server import Server
from client.settings import load
from memory_core import limits
from memory_core.errors import Conflict, NotFound

_BASE = "/api/v1/knowledge"
_COLUMNS = ("changed", "key", "version", "sure", "pinned", "content", "id")
_Place = str | None
_ID = re.compile(r"[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}", re.IGNORECASE | re.ASCII)
#: Of several entries, how many a message names.
_NAMED = 5


@click.group()
def command() -> None:
    """Knowledge of a directory or project: list, search, show; remember, activate, pin and forget.

    An ENTRY is named by its key there, or by its id.
    """


@command.command("list")
@click.option("--forgotten", is_flag=True, help="What was forgotten instead of what is known.")
@click.option("-n", "--limit", type=click.IntRange(1, 10_000), default=50, show_default=True)
@here_options
@json_option
def list_entries(forgotten: bool, limit: int, as_json: bool, **place: _Place) -> None:
    """List what is known: pinned entries first, then those that changed last."""
    where = here(**place)
    state = "forgotten" if forgotten else "active"
    found = _all(_BASE, limit=limit, state=state, **where.query)
    empty = f"Nothing {'was forgotten' if forgotten else 'is known'} in {where.said}. {_elsewhere(where)}".rstrip()
    emit(found, as_json=as_json, text=lambda: _table(found, empty))


@command.command()
@click.argument("query", nargs=-1, required=True)
@click.option(
    "-n", "--limit", type=click.IntRange(1, limits.KNOWLEDGE_LIST_MAX), default=20, show_default=True
)
@here_options
@json_option
def search(query: tuple[str, ...], limit: int, as_json: bool, **place: _Place) -> None:
    """Find entries whose key or content holds QUERY, in any case. No character in it is special."""
    where, words = here(**place), " ".join(query)
    found = Server(load()).get(f"{_BASE}/search", q=words, limit=limit, **where.query)
    empty = f"Nothing that is known in {where.said} holds {visible(words)!r}."
    emit(found, as_json=as_json, text=lambda: _table(found, empty))


@command.command()
@click.argument("entry", metavar="ENTRY")
@here_options
@json_option
def show(entry: str, as_json: bool, **place: _Place) -> None:
    """Show one entry whole, forgotten or not: what holds, where it comes from, when it was taken away."""
    found = _one(entry, here(**place))
    emit(found, as_json=as_json, text=lambda: _print(found))


@command.command()
@click.argument("entry", metavar="ENTRY")
@click.option("-n", "--limit", type=click.IntRange(1, 10_000), default=100, show_default=True)
@here_options
@json_option
def history(entry: str, limit: int, as_json: bool, **place: _Place) -> None:
    """List every version of an entry, the newest first; * marks the one that holds."""
    where = here(**place)
    found = _all(_path(entry, where, "history"), limit=limit, **where.query)
    rows = [
        (
            f"{'*' if v['active'] else ' '}{v['version']}",
            v["created_at"][:19],
            v["origin"],
            f"{v['confidence']:.2f}",
            shortened(v["content"], 200),
        )
        for v in found
    ]
    columns = ("version", "made", "origin", "sure", "content")
    emit(found, as_json=as_json, text=lambda: table(columns, rows, empty="No version.", cut="content"))


@command.command()
@click.argument("key")
@click.argument("rest", nargs=-1, metavar="")
@click.option("-b", "--body", help="What is known; without it, standard input is read.")
@click.option("--pin", is_flag=True, help="Pin it too: it does not age, and no session changes it.")
@click.option("--session", "session_id", help="The durable session that it was learnt in.")
@here_options
@json_option
def remember(
    key: str,
    rest: tuple[str, ...],
    body: str | None,
    pin: bool,
    session_id: str | None,
    as_json: bool,
    **place: _Place,
) -> None:
    """Say what is so under KEY: a new version, which holds. Older ones stay in its history."""
    if rest:
        raise click.UsageError(
            "what is known comes with --body TEXT, or from standard input; a KEY of several words wants quotes"
        )
    if body is None:
        if sys.stdin.isatty():
            raise click.UsageError("give --body, or pipe the text in")
        body = sys.stdin.read()
    more = {"pinned": True if pin else None, "session_id": session_id}
    given = {name: value for name, value in more.items() if value is not None}
    answer = _change(f"{_BASE}/remember", here(**place), key=key, content=body, **given)
    _tell(answer, as_json, lambda: f"{_named(answer)} holds version {answer['version']}")


@command.command()
@click.argument("entry", metavar="ENTRY")
@click.argument("version", type=click.IntRange(1, limits.KNOWLEDGE_VERSION_MAX))
@here_options
@json_option
def activate(entry: str, version: int, as_json: bool, **place: _Place) -> None:
    """Let another VERSION of an entry hold. One that was forgotten is known again."""
    where = here(**place)
    answer = _change(_path(entry, where, "activate"), where, version=version)
    _tell(answer, as_json, lambda: f"{_named(answer)} holds version {answer['version']}")


@command.command()
@click.argument("entry", metavar="ENTRY")
@here_options
@json_option
def pin(entry: str, as_json: bool, **place: _Place) -> None:
    """Keep an entry from ageing and from changes by sessions."""
    where = here(**place)
    answer = _change(_path(entry, where, "pin"), where)
    _tell(answer, as_json, lambda: f"{_named(answer)} is pinned")


@command.command()
@click.argument("entry", metavar="ENTRY")
@here_options
@json_option
def unpin(entry: str, as_json: bool, **place: _Place) -> None:
    """Take an entry's pin away."""
    where = here(**place)
    answer = _change(_path(entry, where, "unpin"), where)
    _tell(answer, as_json, lambda: f"{_named(answer)} is not pinned")


@command.command()
@click.argument("entry", metavar="ENTRY")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@here_options
@json_option
def forget(entry: str, yes: bool, as_json: bool, **place: _Place) -> None:
    """Hide an entry, its page and its file, and take its pin away. Its history is kept; `activate` brings it back."""
    where = here(**place)
    entry_id = _id(entry, where)
    if not yes:
        found = _one(entry_id, where)
        pinned = ", pinned" if found["pinned"] else ""
        said = shortened(found["content"], 200)
        click.echo(inline(f"{found['key']} (version {found['version']}{pinned}): {said}"), err=True)
        confirm("Forget it?")
    answer = _change(_path(entry_id, where, "forget"), where)
    _tell(answer, as_json, lambda: f"{_named(answer)} is forgotten")


def _id(entry: str, where: Here) -> str:
    """The id of an entry that is named by its id, or by its key there."""
    if _ID.fullmatch(entry):
        return entry
    found = Server(load()).get(_BASE, key=entry, limit=limits.KNOWLEDGE_LIST_MAX, **where.query)
    if len(found) == 1:
        return str(found[0]["id"])
    if not found:
        raise NotFound(
            f"nothing is known under the key {visible(entry)!r} in {where.said}; `memoryd knowledge list` shows keys and ids"
        )
    several = ", ".join(str(each["id"]) for each in found[:_NAMED])
    raise Conflict(
        f"in {where.said} {len(found)} directories have the key {visible(entry)!r}: say which with -C, or by id ({several})"
    )


def _path(entry: str, where: Here, what: str = "") -> str:
    base = f"{_BASE}/{_id(entry, where)}"
    return f"{base}/{what}" if what else base


def _all(path: str, *, limit: int, **query: str) -> list[dict[str, Any]]:
    return list(Server(load()).listed(path, limit=limit, page=limits.KNOWLEDGE_LIST_MAX, **query))


def _one(entry: str, where: Here) -> dict[str, Any]:
    return Server(load()).get(_path(entry, where), **where.query)


def _change(path: str, where: Here, **given: Any) -> dict[str, Any]:
    return Server(load()).request("POST", path, body={**where.body, **given})[0]


def _tell(answer: dict[str, Any], as_json: bool, sentence: Callable[[], str]) -> None:
    def text() -> None:
        if answer.get("status") == "pending":
            click.echo(f"Accepted, not yet committed: command {answer['command_id']}")
        else:
            was = "" if answer["changed"] else " (as it was)"
            click.echo(f"{sentence()}{was}")

    emit(answer, as_json=as_json, text=text)


def _named(answer: dict[str, Any]) -> str:
    return f"{inline(answer['key'])} [{answer['id']}]"


def _elsewhere(where: Here) -> str:
    return "" if where.project else "A project's own knowledge: --project NAME"


def _table(found: list[dict[str, Any]], empty: str) -> None:
    rows = [
        (
            e["updated_at"][:19],
            e["key"],
            e["version"],
            f"{e['confidence']:.2f}",
            "pinned" if e["pinned"] else "",
            shortened(e["content"], 200),
            e["id"],
        )
        for e in found
    ]
    table(_COLUMNS, rows, empty=empty, cut="content")


def _print(entry: dict[str, Any]) -> None:
    source = entry["source"]
    facts = {
        "id": entry["id"],
        "version": entry["version"],
        "confidence": f"{entry['confidence']:.2f}",
        "origin": entry["origin"],
        "pinned": "yes" if entry["pinned"] else None,
        "project": f"{entry['workspace']}/{entry['project']}",
        "page": entry["path"],
        "changed": entry["updated_at"],
        "ends": entry["expires_at"],
        "forgotten": entry["forgotten_at"],
        "session": source
        and f"{source['session']}, events {source['first_sequence']} to {source['last_sequence']}",
    }
    click.secho(inline(entry["key"]), bold=True)
    for name, value in facts.items():
        if value is not None:
            click.echo(f"  {name}: {inline(str(value))}")
    for gone in entry["tombstones"]:
        click.echo(f"  taken away: {gone['created_at'][:19]} ({gone['origin']})")
    click.echo(f"\n{visible(entry['content'])}")

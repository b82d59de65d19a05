"""`memoryd import-emelex`: what an older program, emelex, kept comes into memoryd. Its database is only read."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import click

from client.durable.directory import host_id
from client.durable.transport import Transport
from client.emelex import copying
from client.emelex.assets import Files
from client.emelex.identity import Host
from client.emelex.plan import Plan
from client.emelex.progress import Screen
from client.emelex.sending import Sender, Wishes
from client.emelex.survey import survey
from client.emelex.tables import opened
from client.output import emit, json_option, visible
from client.reference import scoped
from client.settings import load, state_dir_of
from memory_core.clock import SystemClock
from memory_core.errors import Conflict, Corrupt, Invalid, SchemaTooNew

_LEFT_SHOWN = 20
#: One, and several.
_NAMES = {
    "sessions": ("session", "sessions"),
    "events": ("event", "events"),
    "unfinished_turns": ("unfinished turn", "unfinished turns"),
    "compactions": ("compaction", "compactions"),
    "distillations": ("distillation", "distillations"),
    "jobs": ("job", "jobs"),
    "knowledge": ("entry of knowledge", "entries of knowledge"),
    "versions": ("version", "versions"),
    "tombstones": ("tombstone", "tombstones"),
    "assets": ("asset", "assets"),
}


@click.command()
@click.argument("database", type=click.Path())
@click.option("--dry-run", is_flag=True, help="Say what would come, and change nothing.")
@click.option(
    "--skip-damaged", is_flag=True, help="Leave out what is damaged or unsuitable, and import the rest."
)
@click.option("--again", is_flag=True, help="Bring back also what was imported before and deleted here.")
@click.option(
    "--host",
    metavar="ID",
    help="The machine whose directories the database is about, as memoryd names it; default: this one.",
)
@click.option("--workspace", help="Workspace of the project; default: 'default'.")
@click.option("--project", help="Put everything into this project; default: that of each directory.")
@json_option
def command(
    database: str,
    dry_run: bool,
    skip_damaged: bool,
    again: bool,
    host: str | None,
    workspace: str | None,
    project: str | None,
    as_json: bool,
) -> None:
    """Import what emelex kept: DATABASE is usually ~/.emelex/memory/emelex.sqlite3 (schemas 1 to 6).

    Works from a copy, brings nothing in twice, and goes on where it was if it was stopped.
    """
    workspace, project = scoped(workspace, project)
    if workspace and not project:
        raise click.UsageError("--workspace goes with --project")
    file, screen, settings = Path(database), Screen(quiet=as_json), load()
    wishes = Wishes(workspace=workspace, project=project, again=again)
    room = Path(state_dir_of(dict(os.environ))) / "imports"
    with ExitStack() as stack:
        with _about(database):
            copy = stack.enter_context(copying.private_copy(file, room, time.sleep))
            tables = stack.enter_context(opened(copy))
            files = Files(copying.assets_of(file.resolve()))
            with screen.step("reading the database") as tick:
                plan = survey(tables, _host(host), files, SystemClock().now_us(), tick)
        sender = Sender(Transport(settings), tables, files, plan, wishes)
        told = _preview(database, plan, sender.known(), dry_run=dry_run)
        is_refused = plan.is_refused and not skip_damaged
        if not as_json:
            _say_preview(told, plan)
        if not dry_run and not is_refused:
            told |= _brought_in(sender, plan, screen)
    emit(told, as_json=as_json, text=lambda: _say_end(told, is_refused=is_refused))
    if is_refused or told.get("left") or told.get("wrong"):
        sys.exit(1)


@contextmanager
def _about(database: str) -> Generator[None]:
    """What is wrong with the database is said with its name."""
    try:
        yield
    except (SchemaTooNew, Conflict, Invalid, Corrupt) as error:
        raise type(error)(f"{database}: {error}") from error


def _host(named: str | None) -> Host:
    own = host_id(os.environ)
    return Host(id=named or own, is_this=named in (None, own))


def _preview(
    database: str, plan: Plan, known: dict[str, dict[str, dict[str, Any]]], *, dry_run: bool
) -> dict[str, Any]:
    states = {kind: dict(Counter(each["state"] for each in of.values())) for kind, of in known.items()}
    collisions = [
        {"id": entry.id, "key": entry.key, "path": entry.directory.path, "with": whom}
        for entry in plan.entries
        for whom in _collides(entry.collided, known["knowledge"].get(entry.id, {}))
    ]
    return {
        "database": database,
        "schema": plan.version,
        "dry_run": dry_run,
        "found": plan.counts(),
        "here": states,
        "collisions": collisions,
        "legacy": {
            "sessions": sum(session.is_legacy for session in plan.sessions),
            "knowledge": sum(entry.is_legacy for entry in plan.entries),
        },
        "cut": [entry.id for entry in plan.entries if entry.cut],
        "problems": [problem.as_json() for problem in plan.problems],
    }


def _collides(in_database: bool, known: dict[str, Any]) -> list[str]:
    if known.get("collides"):
        return ["memoryd"]
    return ["database"] if in_database and known.get("state") != "there" else []


def _brought_in(sender: Sender, plan: Plan, screen: Screen) -> dict[str, Any]:
    with screen.step("sessions", len(plan.sessions)) as tick:
        for session in plan.sessions:
            sender.session(session)
            tick()
    with screen.step("entries of knowledge", len(plan.entries)) as tick:
        for entry in plan.entries:
            sender.entry(entry)
            tick()
    with screen.step("looking whether memoryd's database is whole") as tick:
        wrong = sender.check(lambda _table: tick())
    done = sender.done
    return {"imported": dict(done.counts), "left": done.left, "collided": done.collided, "wrong": wrong}


def _say_preview(told: dict[str, Any], plan: Plan) -> None:
    _line(f"{told['database']}: schema {told['schema']}: {_counted(told['found'])}")
    for state, words in (
        ("there", "here already"),
        ("deleted", "deleted here since (--again brings it back)"),
    ):
        here = {kind: states.get(state, 0) for kind, states in told["here"].items()}
        if any(here.values()):
            _line(f"{words}: {_counted(here)}")
    if any(told["legacy"].values()):
        _line(f"of directories that are gone: {_counted(told['legacy'])}")
    for each in told["collisions"]:
        keeper = "memoryd" if each["with"] == "memoryd" else "the database"
        _line(
            f"collision: {each['key']!r} of {each['path']}: another entry of {keeper} has this key there and keeps it;"
            f" {each['id']} stays beside it"
        )
    for entry_id in told["cut"]:
        _line(f"cut: knowledge {entry_id} has a text that is longer than memoryd keeps")
    shown = plan.problems[:_LEFT_SHOWN]
    for problem in shown:
        _line(f"{problem.kind}: {problem.what}: {problem.why}")
    if len(plan.problems) > len(shown):
        _line(f"… and {len(plan.problems) - len(shown)} more (--json names all)")


def _say_end(told: dict[str, Any], *, is_refused: bool) -> None:
    if is_refused:
        _line(
            "Nothing was imported: mend what is named above, or leave it out with --skip-damaged"
            " (events whose assets are missing come with a note in their place)."
        )
        return
    if told["dry_run"]:
        _line("Nothing was changed.")
        return
    for left in told["left"][:_LEFT_SHOWN]:
        _line(f"left as it is: {left['what']}: {left['why']}")
    done = told["imported"]
    there = {kind: done.get(f"{kind}_there", 0) for kind in ("sessions", "knowledge")}
    was_here = f"; here already: {_counted(there)}" if any(there.values()) else ""
    click.echo(f"Imported {_counted(done)}{was_here}.")
    if told["wrong"]:
        _line(
            f"{told['wrong']} of memoryd's tables are damaged: run memoryd schedule run integrity_audit --wait 600"
        )


def _counted(counts: dict[str, int]) -> str:
    said = [
        f"{counts[name]} {words[counts[name] != 1]}" for name, words in _NAMES.items() if counts.get(name)
    ]
    return ", ".join(said) or "nothing"


def _line(text: str) -> None:
    click.echo(visible(text), err=True)

"""`memoryd sessions`: the sessions that memoryd has seen, and the durable ones among them, whose exact events are kept."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlencode

import click

from client import exports
from client.commands.jobs import flattened
from client.durable.directory import identity_of
from client.durable.recovery import recover as recover_session
from client.durable.routes import HttpSession
from client.durable.transport import Transport
from client.exports import session_path
from client.output import confirm, emit, inline, json_option, list_scope_options, table, visible
from client.server import Server, with_marker
from client.settings import load
from memory_core import limits
from memory_core.errors import CoreError, SessionBusy, UncertainCalls, WorkspaceMismatch

_STAYS = {
    "knowledge": "what was learnt from it, with where it comes from",
    "git_history": "the history of the wiki in git",
    "backups": "every backup made before",
    "free_pages": "free pages of the database file, until they are written over",
    "page": "its page in the wiki, {page} (--with-pages deletes that too)",
}
_directory = click.option(
    "-C", "--directory", type=click.Path(), default=".", help="The session's directory; default: this one."
)


@click.group()
def command() -> None:
    """Sessions: list them; show, title, compact, distill, export, recover and delete durable ones."""


@command.command("list")
@click.option("-n", "--limit", type=click.IntRange(1, 10_000), default=20, show_default=True)
@click.option("--all", "everything", is_flag=True, help="All of them, however many.")
@click.option("--open", "only_open", is_flag=True, help="Only sessions that have not ended.")
@click.option("--durable", is_flag=True, help="Only durable sessions, those that changed last first.")
@list_scope_options
@json_option
def list_sessions(
    limit: int,
    everything: bool,
    only_open: bool,
    durable: bool,
    workspace: str | None,
    project: str | None,
    as_json: bool,
) -> None:
    """List sessions, newest first."""
    if durable and only_open:
        raise click.UsageError("--open is about sessions as hooks tell of them; leave it out with --durable")
    where = with_marker({"workspace": workspace, "project": project})
    most = None if everything else limit
    if durable:
        found = _listed(exports.SESSIONS, most, limits.DURABLE_SESSIONS_PAGE_MAX, **where)
        empty = (
            f"No durable session in the project {visible(project)}." if project else "No durable session yet."
        )
        emit(found, as_json=as_json, text=lambda: _durable_table(found, empty))
        return
    state = "open" if only_open else None
    found = _listed("/api/v1/sessions", most, limits.LIST_MAX, state=state, **where)
    emit(found, as_json=as_json, text=lambda: _table(found))


@command.command()
@click.argument("session_id")
@json_option
def show(session_id: str, as_json: bool) -> None:
    """Show a durable session: where it works, how far it is, who holds it, whether a turn is unfinished."""
    session = Server(load()).get(session_path(session_id))
    facts = {name: value for name, value in session.items() if name != "snapshot"}
    rows = [(name, value) for name, value in flattened(facts) if value is not None and value != ""]
    emit(session, as_json=as_json, text=lambda: table(("", ""), rows, empty="It is empty."))


@command.command()
@click.argument("session_id")
@click.argument("text", metavar="TITLE")
@json_option
def title(session_id: str, text: str, as_json: bool) -> None:
    """Give a durable session that nobody holds another title."""
    answer = _post(session_path(session_id, "title"), title=text)
    emit(
        answer,
        as_json=as_json,
        text=lambda: click.echo(f"{session_id}: {inline(answer.get('title', text))}"),
    )


@command.command()
@click.argument("session_id")
@click.option("--context-window", type=click.IntRange(1), metavar="TOKENS", help="How much the model takes.")
@click.option(
    "--used", type=click.IntRange(0), metavar="TOKENS", help="How much is used; default: an estimate."
)
@click.option(
    "--keep-turns",
    type=click.IntRange(1),
    default=limits.COMPACTION_PRESERVED_TURNS_DEFAULT,
    show_default=True,
    help="The last turns, which stay as they are.",
)
@click.option(
    "--through", type=click.IntRange(1), metavar="SEQUENCE", help="Up to this event, without a plan."
)
@json_option
def compact(
    session_id: str,
    context_window: int | None,
    used: int | None,
    keep_turns: int,
    through: int | None,
    as_json: bool,
) -> None:
    """Have the beginning of a durable session summed up, once it fills most of the model's window."""
    if (context_window is None) == (through is None):
        raise click.UsageError("say --context-window TOKENS, or --through SEQUENCE")
    body: dict[str, Any] = {"through_sequence": through}
    if through is None:
        body = {"context_window": context_window, "preserve_recent_turns": keep_turns}
        body |= {} if used is None else {"current_tokens": used}
    answer = _post(session_path(session_id, "compactions"), **body)
    emit(answer, as_json=as_json, text=lambda: click.echo(_compacting(answer)))


@command.command()
@click.argument("session_id")
@_directory
@json_option
def distill(session_id: str, directory: str, as_json: bool) -> None:
    """Close a durable session that nobody holds, so that knowledge is drawn from it. It can be resumed later."""
    port = HttpSession(Transport(load()), session_id, identity_of(directory, os.environ))
    with _in_its_directory(session_id):
        port.claim()
    try:
        job = port.close()
    except BaseException:
        with suppress(CoreError):
            port.release()
        raise
    said = f"job {job}; see: memoryd jobs show {job}" if job else "nothing new to draw knowledge from"
    emit({"closed": True, "job": job}, as_json=as_json, text=lambda: click.echo(f"{session_id}: {said}"))


@command.command()
@click.argument("session_id")
@click.option("-o", "--output", type=click.Path(), help="A new file; default: standard output.")
@click.option(
    "--json", "as_json", is_flag=True, help="Say as JSON what was written. The export is JSON anyway."
)
def export(session_id: str, output: str | None, as_json: bool) -> None:
    """Write a durable session out as JSON, with its snapshot, events and the names of its assets."""
    exports.write(exports.session_pieces(Server(load()), session_id), output)
    if output is not None:
        emit({"output": output}, as_json=as_json, text=lambda: click.echo(f"Wrote {visible(output)}"))


@command.command()
@click.argument("session_id")
@_directory
@click.option(
    "--accept-unknown-effects",
    is_flag=True,
    help="Also where calls were started and nobody saw their end: look first what they did.",
)
@json_option
def recover(session_id: str, directory: str, accept_unknown_effects: bool, as_json: bool) -> None:
    """Close the interrupted turn of a durable session. No tool is run again."""
    try:
        with _in_its_directory(session_id):
            report = dict(
                recover_session(session_id, directory, accept_unknown_effects=accept_unknown_effects)
            )
    except UncertainCalls as error:
        raise UncertainCalls(_uncertain(session_id, error), detail=error.detail) from error
    rows = [(name, value) for name, value in flattened(report) if value is not None and value != ""]
    emit(report, as_json=as_json, text=lambda: table(("", ""), rows, empty="Recovered."))


@command.command()
@click.argument("session_id")
@click.option("--with-pages", is_flag=True, help="Delete its page in the wiki too.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@json_option
def delete(session_id: str, with_pages: bool, yes: bool, as_json: bool) -> None:
    """Delete a durable session, after showing what goes and what stays. It is no secure erasure."""
    server = Server(load())
    query = {"with_pages": "1"} if with_pages else {}
    path = session_path(session_id)
    if not yes:
        preview = server.request("DELETE", f"{path}?{urlencode({**query, 'preview': '1'})}")[0]
        _preview(preview)
        if until := preview["busy_until"]:
            raise SessionBusy(f"it is worked on, at most until {until}; then delete it")
        confirm("Delete it?")
    answer = server.request("DELETE", f"{path}?{urlencode(query)}" if query else path)[0]

    def text() -> None:
        if answer.get("status") == "pending":
            click.echo(f"Accepted, not yet committed: command {answer['command_id']}")
            return
        rest = "; the rest of its rows goes with the next maintenance" if answer.get("left") else ""
        click.echo(f"Deleted {session_id}{rest}. It is no secure erasure.")
        if yes:
            _stays(answer)

    emit(answer, as_json=as_json, text=text)


@contextmanager
def _in_its_directory(session_id: str) -> Generator[None]:
    """Another directory than the session's is told with the one that it works in."""
    try:
        yield
    except WorkspaceMismatch as error:
        place = Server(load()).get(session_path(session_id))["directory"]["path"]
        raise WorkspaceMismatch(
            f"this is not the directory that the session works in, which was {place} when it was worked on last;"
            " go there, or name it with -C"
        ) from error


def _uncertain(session_id: str, error: UncertainCalls) -> str:
    calls = [f"{call['tool_name']} ({call['call_id']})" for call in error.detail.get("calls", ())]
    return (
        f"started, and nobody saw the end: {', '.join(calls)}. Look at what was done, then: memoryd sessions recover"
        f" {session_id} --accept-unknown-effects"
    )


def _listed(path: str, limit: int | None, page: int, **query: str | None) -> list[dict[str, Any]]:
    return list(Server(load()).listed(path, limit=limit, page=page, **query))


def _post(path: str, **body: Any) -> dict[str, Any]:
    return Server(load()).request("POST", path, body=body)[0]


def _table(found: list[dict[str, Any]]) -> None:
    columns = ("started", "agent", "project", "state", "events", "title", "id")
    rows = [
        (
            s["started_at"][:19],
            s["agent"],
            s["project"],
            "ended" if s.get("ended_at") else "open",
            s["event_count"],
            s.get("title") or "untitled",
            s["id"],
        )
        for s in found
    ]
    table(columns, rows, empty="No session yet.", cut="title")


def _durable_table(found: list[dict[str, Any]], empty: str) -> None:
    columns = ("changed", "agent", "project", "state", "events", "title", "id")
    rows = [
        (
            s["updated_at"][:19],
            s["agent"],
            s["project"],
            "held" if s["is_held"] else "closed" if s["closed_at"] else "free",
            s["last_sequence"],
            s["title"] or "untitled",
            s["id"],
        )
        for s in found
    ]
    table(columns, rows, empty=empty, cut="title")


def _compacting(answer: dict[str, Any]) -> str:
    job = answer.get("job")
    if answer.get("status") == "pending":
        return f"Accepted, not yet committed: command {answer['command_id']}"
    if job is None:
        return (
            "Nothing to sum up: it does not fill enough of the window, or its last turns are all that it has."
        )
    job_id = job["id"] if isinstance(job, dict) else job
    begun = "" if answer.get("is_new", True) else " (it was asked for already)"
    return f"job {job_id}{begun}; see: memoryd jobs show {job_id}"


def _preview(told: dict[str, Any]) -> None:
    events = told["events"]
    named = inline(told["title"] or "untitled")
    click.echo(f"{named}: {events} event{'' if events == 1 else 's'}, {told['event_bytes']} bytes", err=True)
    if told["busy_until"]:
        click.echo(f"It is worked on until {told['busy_until'][:19]}.", err=True)
    if told["has_unfinished_turn"]:
        click.echo("A turn of it is unfinished and would be lost.", err=True)
    if lost := told["undistilled_events"]:
        click.echo(f"No knowledge was drawn from {lost} event{'' if lost == 1 else 's'} yet.", err=True)
    _stays(told)
    click.echo("It is no secure erasure.", err=True)


def _stays(told: dict[str, Any]) -> None:
    page = inline(told.get("page") or "")
    if page and "page" not in told.get("stays", ()):
        click.echo(f"goes too: its page in the wiki, {page}", err=True)
    for name in told.get("stays", ()):
        click.echo(f"stays: {_STAYS[name].format(page=page) if name in _STAYS else inline(name)}", err=True)

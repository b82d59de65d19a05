"""`memoryd jobs`: work in the background; what waits, runs and failed, and what a person does about it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from client import jobs
from client.output import confirm, emit, json_option, table
from client.server import Server
from client.settings import load
from memory_core.domain.job import QUEUES, State

_SHOWN = 20
_queue = click.argument("queue", type=click.Choice(QUEUES))


def _filters(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds `--kind`, `--queue`, `--workspace` and `--project`."""
    for option in (
        click.option("--project", help="Only jobs of this project."),
        click.option("--workspace", help="Workspace of the project; default: 'default'."),
        click.option("--queue", type=click.Choice(QUEUES), help="Only jobs of this queue."),
        click.option("--kind", help="Only jobs of this kind."),
    ):
        function = option(function)
    return function


@click.group()
def command() -> None:
    """Jobs in the background: list, show, retry, cancel; pause and resume a queue."""


@command.command("list")
@click.option("--state", type=click.Choice([state.value for state in State]), help="Only jobs in this state.")
@_filters
@click.option("-n", "--limit", type=click.IntRange(1, 10_000), default=50, show_default=True)
@click.option("--all", "everything", is_flag=True, help="All of them, however many.")
@json_option
def list_jobs(limit: int, everything: bool, as_json: bool, **wanted: str | None) -> None:
    """List jobs, newest first, after a line for each queue."""
    _check_scope(wanted)
    server = Server(load())
    queues = [q for q in server.get("/api/v1/queues") if wanted["queue"] in (None, q["queue"])]
    found = list(jobs.listed(server, limit=None if everything else limit, **wanted))

    def text() -> None:
        for queue in queues:
            click.echo(jobs.queue_line(queue), err=True)
        table(
            jobs.COLUMNS,
            map(jobs.row, found),
            empty="No job of that sort." if any(wanted.values()) else "No job yet.",
            cut="about",
        )

    emit({"queues": queues, "jobs": found}, as_json=as_json, text=text)


@command.command()
@click.argument("job_id")
@json_option
def show(job_id: str, as_json: bool) -> None:
    """Show one job whole: its tries, its worker, its last error, its result."""
    job = jobs.one(Server(load()), job_id)
    emit(job, as_json=as_json, text=lambda: table(("", ""), _facts(job), empty="It is empty."))


@command.command()
@click.argument("job_ids", nargs=-1)
@click.option(
    "--state",
    type=click.Choice(["failed", "cancelled"]),
    default="failed",
    show_default=True,
    help="Without ids: which ones.",
)
@_filters
@click.option("--all", "everything", is_flag=True, help="Every job in that state.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@json_option
def retry(
    job_ids: tuple[str, ...], state: str, everything: bool, yes: bool, as_json: bool, **wanted: str | None
) -> None:
    """Try failed or cancelled jobs again, as if they had never failed: those named, or those that fit the filters."""
    server = Server(load())
    ids = _chosen(server, job_ids, wanted, (state,), everything=everything)
    if ids and not job_ids and not yes:
        confirm(f"Try {_many(len(ids))} again?")
    _do(server, "retry", ids, done="pending again", as_json=as_json)


@command.command()
@click.argument("job_ids", nargs=-1)
@click.option("--state", type=click.Choice(["pending", "running", "failed"]), help="Without ids: only these.")
@_filters
@click.option("--all", "everything", is_flag=True, help="Every job that has not ended.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@json_option
def cancel(
    job_ids: tuple[str, ...],
    state: str | None,
    everything: bool,
    yes: bool,
    as_json: bool,
    **wanted: str | None,
) -> None:
    """Cancel jobs: those named, or those that fit the filters.

    A pending one ends at once; a running one is let go by its worker at its next sign of life. A failed one is dismissed:
    memoryd doctor counts it no more.
    """
    server = Server(load())
    states = (state,) if state else ("pending", "running")
    ids = _chosen(
        server, job_ids, wanted, states, everything=everything or bool(state and not any(wanted.values()))
    )
    if ids and not yes:
        if job_ids:
            _preview([jobs.one(server, job) for job in ids[:_SHOWN]], len(ids))
        confirm(f"Cancel {_many(len(ids))}?")
    _do(server, "cancel", ids, done="cancelled", as_json=as_json)


@command.command()
@_queue
@json_option
def pause(queue: str, as_json: bool) -> None:
    """Let a queue give no job until it is resumed. What runs goes on."""
    server = Server(load())
    answer = server.request("POST", f"/api/v1/queues/{queue}/pause", body={})[0]
    state = jobs.queue_of(server, queue)
    was = "" if answer.get("changed", True) else "already "

    def text() -> None:
        said = f"{was}{jobs.paused(state)}" if state["paused"] else "will be paused in a moment"
        click.echo(
            f"{queue}: {said}; {state['running']} running, {state['pending']} waiting. "
            f"On again with: memoryd jobs resume {queue}"
        )

    emit({**answer, **state}, as_json=as_json, text=text)


@command.command()
@_queue
@json_option
def resume(queue: str, as_json: bool) -> None:
    """Let a paused queue give jobs again."""
    server = Server(load())
    before = jobs.queue_of(server, queue)
    answer = server.request("POST", f"/api/v1/queues/{queue}/resume", body={})[0]
    state = jobs.queue_of(server, queue)
    was = f"it was {jobs.paused(before)}" if before["paused"] else "it was not paused"
    emit(
        {**answer, **state, "was_paused_by": before["paused_by"], "was_paused_at": before["paused_at"]},
        as_json=as_json,
        text=lambda: click.echo(f"{queue}: gives jobs ({was}); {state['pending']} waiting."),
    )


def _chosen(
    server: Server,
    ids: tuple[str, ...],
    wanted: dict[str, str | None],
    states: tuple[str, ...],
    *,
    everything: bool,
) -> list[str]:
    """Ids: as named, or of the jobs that fit, which are shown on stderr."""
    has_filter = any(wanted.values())
    if bool(ids) == (has_filter or everything):
        raise click.UsageError(
            "name jobs of `memoryd jobs list`, or say which by --kind, --queue, --project or --all"
        )
    if ids:
        return list(dict.fromkeys(ids))
    _check_scope(wanted)
    found = [job for state in states for job in jobs.listed(server, limit=None, state=state, **wanted)]
    _preview(found[:_SHOWN], len(found))
    return [job["id"] for job in found]


def _check_scope(wanted: dict[str, str | None]) -> None:
    if wanted["workspace"] and not wanted["project"]:
        raise click.UsageError("--workspace goes with --project")


def _preview(some: list[dict[str, Any]], count: int) -> None:
    for job in some:
        where = f" of {jobs.project_of(job)}" if job["project"] else ""
        why = f": {job['last_error']}" if job["last_error"] else ""
        click.echo(f"{job['id']}  {jobs.state_of(job)}  {job['kind']}{where}{why}", err=True)
    if count > len(some):
        click.echo(f"… and {count - len(some)} more", err=True)


def _do(server: Server, what: str, ids: list[str], *, done: str, as_json: bool) -> None:
    answers, skipped = jobs.each(server, what, ids, quiet=as_json)

    def text() -> None:
        for job in skipped:
            click.echo(f"left alone: {job['id']}: {job['reason']}", err=True)
        asked = [answer for answer in answers if answer.get("cancel_asked")]
        if len(answers) == 1 and not skipped:
            said = "its worker lets go of it at its next sign of life" if asked else done
            click.echo(f"{answers[0]['id']}: {said}")
            return
        click.echo(f"{_many(len(answers) - len(asked))} {done}")
        if asked:
            click.echo(f"{_many(len(asked))} running: their workers let go at their next sign of life")

    emit({"done": answers, "skipped": skipped}, as_json=as_json, text=text)


def _facts(job: dict[str, Any]) -> list[tuple[str, Any]]:
    """Without what there is nothing to say about."""
    return [(name, value) for name, value in flattened(job) if value is not None and value != ""]


def _many(count: int) -> str:
    return f"{count} job{'' if count == 1 else 's'}"


def flattened(value: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Nested facts as rows: `result.files` → value."""
    rows: list[tuple[str, Any]] = []
    for key, item in value.items():
        name = f"{prefix}{key}"
        rows += flattened(item, f"{name}.") if isinstance(item, dict) else [(name, _worded(item))]
    return rows


def _worded(value: Any) -> Any:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else value

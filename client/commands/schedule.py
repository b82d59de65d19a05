"""`memoryd schedule`: what the server does by the clock, when it did so last, and doing it now."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import click

from client import jobs
from client.output import emit, fail, json_option, table
from client.reference import scoped
from client.server import Server, ServerError
from client.settings import load

_COLUMNS = ("kind", "queue", "schedule", "last run", "what became of it", "next run")


@click.group()
def command() -> None:
    """Schedules of background work: list them, run one now. They are set in config.toml, `[schedules]`."""


@command.command("list")
@json_option
def list_schedules(as_json: bool) -> None:
    """List all schedules with their last run, what became of it, and the next one (UTC)."""
    found = Server(load()).get("/api/v1/schedules")
    rows = [
        (s["kind"], s["queue"], s["schedule"], _short(s["last_at"]), _became(s), _short(s["next_at"]))
        for s in found
    ]
    emit(
        found,
        as_json=as_json,
        text=lambda: table(_COLUMNS, rows, empty="No schedule.", cut="what became of it"),
    )


@command.command()
@click.argument("kind")
@click.option("--workspace", help="Workspace of the project; default: 'default'.")
@click.option("--project", help="The project, for a kind that works by project.")
@click.option(
    "--wait",
    "seconds",
    type=click.IntRange(1, 86_400),
    metavar="SECONDS",
    help="Wait so long for the job's end and tell it; exit code 1 when it did not complete.",
)
@json_option
def run(kind: str, workspace: str | None, project: str | None, seconds: int | None, as_json: bool) -> None:
    """Make a job of KIND now, whatever the time: embedding, idle_sessions, integrity_audit,
    maintenance, model_check or unwritten_sessions.

    What works on one session is asked for with memoryd sessions.
    """
    server = Server(load())
    workspace, project = scoped(workspace, project)
    query = (
        f"?workspace={quote(workspace or 'default', safe='')}&project={quote(project, safe='')}"
        if project
        else ""
    )
    answer = server.request("POST", f"/api/v1/schedules/{quote(kind, safe='')}/run{query}", body={})[0]
    if "id" not in answer:
        emit(answer, as_json=as_json, text=lambda: click.echo(f"{kind}: taken; see: memoryd schedule list"))
        return
    is_over = answer["state"] not in ("pending", "running")
    if not is_over and (hint := _paused(server, answer["id"])):
        if seconds is not None:
            fail(ServerError(f"job {answer['id']} waits: {hint}", code="paused", status=409), as_json=as_json)
        click.echo(hint, err=True)
    if seconds is None:
        said = f"{kind}: job {answer['id']} is {answer['state']}; see: memoryd jobs show {answer['id']}"
        emit(answer, as_json=as_json, text=lambda: click.echo(said))
        return
    job = jobs.ended(server, answer["id"], seconds=seconds, quiet=as_json)
    is_done = job["state"] == "completed"
    why = job["last_error"] or jobs.result_in_words(job["result"]) or (is_done and "nothing was to be done")
    told = ": ".join(filter(None, (job["state"], why)))
    emit(job, as_json=as_json, text=lambda: click.echo(f"{kind}: job {job['id']} {told}"))
    if job["state"] != "completed":
        raise SystemExit(1)


def _paused(server: Server, job_id: str) -> str:
    """What to know of the job's queue where it gives no job; empty where it does."""
    queue = jobs.queue_of(server, jobs.one(server, job_id)["queue"])
    return f"{queue['queue']} is {jobs.paused(queue)}; {jobs.resuming(queue)}" if queue["paused"] else ""


def _short(time: str | None) -> str:
    return (time or "")[:19]


def _became(schedule: dict[str, Any]) -> str:
    """The state of the last run's job, with what it found or why it failed."""
    told = (schedule["last_error"], jobs.result_in_words(schedule["last_result"]))
    details = [text for text in told if text]
    return ": ".join([schedule["last_state"] or "", *details])

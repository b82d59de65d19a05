"""Jobs as a person asks for them: lists that go on, the state of each queue in a line, and doing one thing to many."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any
from urllib.parse import quote

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from client.output import shortened
from client.reference import scoped
from client.server import Server, ServerError

_PAGE = 200
_POLL_SECONDS = 0.3
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))
COLUMNS = ("made", "kind", "queue", "project", "state", "tries", "about", "id")


def listed(server: Server, *, limit: int | None, **wanted: str | None) -> Iterator[dict[str, Any]]:
    """Jobs, newest first; all of them where there is no limit."""
    wanted["workspace"], wanted["project"] = scoped(wanted.get("workspace"), wanted.get("project"))
    query = {name: value for name, value in wanted.items() if value is not None}
    if "project" in query:
        query.setdefault("workspace", "default")
    return server.listed("/api/v1/jobs", limit=limit, page=_PAGE, **query)


def one(server: Server, job_id: str) -> dict[str, Any]:
    return server.get(f"/api/v1/jobs/{quote(job_id, safe='')}")


def row(job: dict[str, Any]) -> tuple[Any, ...]:
    """A job as a row under `COLUMNS`."""
    return (
        job["created_at"][:19],
        job["kind"],
        job["queue"],
        project_of(job),
        state_of(job),
        job["failures"] or "",
        shortened(job["last_error"] or job["subject"], 80),
        job["id"],
    )


def state_of(job: dict[str, Any]) -> str:
    """Its state, and what a pending one waits for."""
    if job["cancel_asked_at"] and job["state"] == "running":
        return "running, to be cancelled"
    if job["waits_for"]:
        return f"pending, waits ({job['waits_for'].replace('_', ' ')})"
    return job["state"]


def project_of(job: dict[str, Any]) -> str:
    return f"{job['workspace']}/{job['project']}" if job["project"] else ""


def queue_line(queue: dict[str, Any]) -> str:
    """`lint: 3 pending, the oldest for 2 min, done in about 40 s; 1 running; paused by owner since …`."""
    words = [f"{queue['pending']} pending"]
    if queue["oldest_pending_seconds"] is not None:
        words[0] += f", the oldest for {lasting(queue['oldest_pending_seconds'])}"
        if queue["done_in_seconds"] is not None:
            words[0] += f", done in about {lasting(queue['done_in_seconds'])}"
    words.append(f"{queue['running']} running")
    if queue["past_lease"]:
        words.append(f"{queue['past_lease']} of them silent for too long")
    if queue["failed"]:
        words.append(f"{queue['failed']} failed")
    if queue["paused"]:
        words.append(paused(queue))
    return f"{queue['queue']}: {'; '.join(words)}"


def paused(queue: dict[str, Any]) -> str:
    return f"paused by {queue['paused_by']} since {queue['paused_at'][:19]}"


def resuming(queue: dict[str, Any]) -> str:
    """What to do about a paused one."""
    return f"on again with: memoryd jobs resume {queue['queue']}"


def lasting(seconds: float) -> str:
    """In one unit, the largest that fits."""
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{int(seconds)} s"


def result_in_words(result: dict[str, Any] | None) -> str:
    """Its counts: `ended 3, files 120`."""
    counts = {name: value for name, value in (result or {}).items() if type(value) is int}
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in counts.items())


def doing(job: dict[str, Any]) -> str:
    """Who is at an unfinished job, or what it waits for."""
    return f"{job['worker']} is at it" if job["state"] == "running" else state_of(job)


def ended(
    server: Server,
    job_id: str,
    *,
    seconds: float,
    quiet: bool,
    said: Callable[[dict[str, Any]], str] = doing,
) -> dict[str, Any]:
    """A job when it is over; `said` tells of it meanwhile. Ctrl-C ends the watching, not the job. Raises `ServerError` when it takes longer."""
    console = Console(stderr=True, quiet=quiet)
    until = time.monotonic() + seconds
    with console.status("waiting for a pool worker") as line:
        while True:
            job = one(server, job_id)
            if job["finished_at"] is not None:
                return job
            if time.monotonic() > until:
                raise ServerError(
                    f"the job is still {state_of(job)} after {seconds:g} s; see memoryd jobs show {job_id}",
                    code="still_going",
                    status=409,
                )
            if job["state"] == "running" or job["waits_for"]:
                line.update(said(job))
            time.sleep(_POLL_SECONDS)


def queue_of(server: Server, name: str) -> dict[str, Any]:
    return next(queue for queue in server.get("/api/v1/queues") if queue["queue"] == name)


def each(
    server: Server, what: str, ids: Sequence[str], *, quiet: bool
) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
    """Ask for `cancel` or `retry` of each job: what was answered, and those that could not, with the reason."""
    done: list[dict[str, Any]] = []
    skipped: list[dict[str, str]] = []
    for job in _told(ids, what, quiet=quiet):
        try:
            done.append(
                {
                    "id": job,
                    **server.request("POST", f"/api/v1/jobs/{quote(job, safe='')}/{what}", body={})[0],
                }
            )
        except ServerError as error:
            # It moved on since it was listed; anything else concerns all of them.
            if error.status not in (404, 409) or len(ids) == 1:
                raise
            skipped.append({"id": job, "reason": str(error)})
    return done, skipped


def _told(ids: Sequence[str], what: str, *, quiet: bool) -> Iterable[str]:
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns, console=console, disable=quiet or len(ids) == 1 or not console.is_terminal, transient=True
    ) as bar:
        yield from bar.track(ids, description=what)

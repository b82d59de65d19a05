"""`memoryd embed`: make the embeddings that are missing, or all anew, and say how far it is."""

from __future__ import annotations

from typing import Any

import click

from client import jobs
from client.output import confirm, emit, fail, json_option, scope_options
from client.reference import scoped
from client.server import Server, ServerError
from client.settings import load

_PATH = "/api/v1/embeddings"


@click.command()
@click.option(
    "--force", is_flag=True, help="Make all anew, also what is there; costs as much as the first time."
)
@click.option("--dry-run", is_flag=True, help="Say what would be embedded, and do nothing.")
@click.option("--all-projects", is_flag=True, help="With --force: of all projects, not only of this one.")
@scope_options
@click.option(
    "--wait",
    "seconds",
    type=click.IntRange(1, 86_400),
    default=3600,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for its end; it goes on without you.",
)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@json_option
def command(
    force: bool,
    dry_run: bool,
    all_projects: bool,
    workspace: str | None,
    project: str | None,
    seconds: int,
    yes: bool,
    as_json: bool,
) -> None:
    """Make vectors of page chunks and turns now, and wait until all are made. The server does that by itself, too.

    Texts that failed before are tried again. Exit code 1 when one could not be embedded.
    """
    if all_projects and (workspace or project):
        raise click.UsageError("--all-projects names all; leave --workspace and --project out")
    server = Server(load())
    workspace, project = scoped(workspace, project)
    where = {} if all_projects else {"workspace": workspace, "project": project}
    before = server.get(_PATH, **({} if all_projects or not project else where))
    if before["state"] == "off":
        off = "no embedder is configured: pip install 'memoryd[local]', or name embed_provider under [models]"
        fail(ServerError(off, code="no_embedder", status=409), as_json=as_json)
    count = before["total"] if force else before["pending"] + before["failed"]
    if dry_run:
        emit({**before, "would_embed": count}, as_json=as_json, text=lambda: _tell(before, count))
        return
    if force and not yes:
        scope = "all projects" if all_projects else project or "this project"
        confirm(
            f"Embed {count:,} chunks and turns of {scope} again by {before['provider']}:{before['model']}?"
        )
    body = {"force": force, "all_projects": all_projects, **{k: v for k, v in where.items() if v}}
    job_id = server.request("POST", _PATH, body=body)[0].get("job")
    job = jobs.ended(server, job_id, seconds=seconds, quiet=as_json, said=lambda job: _doing(server, job))
    after = server.get(_PATH)
    failed = after["failed"] or job["state"] != "completed"
    emit({**after, "job": job}, as_json=as_json, text=lambda: _done(after, job))
    if failed:
        raise SystemExit(1)


def _doing(server: Server, job: dict[str, Any]) -> str:
    return jobs.state_of(job) if job["waits_for"] else server.get(_PATH)["progress"]


def _tell(state: dict[str, Any], count: int) -> None:
    click.echo(f"{state['progress']} have their vector by {state['provider']}:{state['model']}.")
    click.echo(f"{count:,} would be embedded." if count else "Nothing would be embedded.")


def _done(state: dict[str, Any], job: dict[str, Any]) -> None:
    if job["state"] != "completed":
        click.echo(
            f"The job {job['state']}: {job['last_error'] or 'it was cancelled'} ({state['progress']})."
        )
    else:
        click.echo(f"Done: {state['progress']}; {jobs.result_in_words(job['result'])}.")

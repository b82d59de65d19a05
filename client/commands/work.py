"""`memoryd work`: do now, in the foreground, what is due. The work is done by the pool worker's own code, in a process of its own."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import click

from client import foreground, jobs, server_libraries
from client.output import emit, fail, json_option, visible
from client.server import Server, ServerError
from client.settings import load, plain_url
from memory_core import config
from memory_core.domain.job import QUEUES
from memory_core.errors import Invalid

#: What the server extra brings that a worker needs.
_NEEDED = ("celery", "msgspec", "redis", "sqlalchemy")
_BAD_SETTING = 78
_INTERRUPTED = 130


class _Refusal(Exception):
    """The worker did not begin."""

    def __init__(self, done: foreground.Done, settings: config.Settings) -> None:
        file = settings.effective_pool_token_file
        advice = f"the token in {file} is not accepted; is it one of scope pool, of that server?"
        super().__init__(f"{settings.gate_url}: {advice if done.refusal == 'forbidden' else done.why}")
        self.code = done.refusal or "failed"
        self.exit_code = _code(done)


@click.command(
    epilog="""\b
Exit codes:
  0    nothing is due any more
  1    a job failed for good, or nobody could be told how it ended
  3    the server is not there
  69   the server's libraries are not installed
  78   the token, the kind or a setting is refused (the reason is named)
  130  stopped by Ctrl-C; the job in hand was handed back"""
)
@click.option("--kind", help="Only jobs of this kind.")
@click.option("--queue", "queues", type=click.Choice(QUEUES), multiple=True, help="Only jobs of this queue.")
@click.option(
    "--data-dir", type=click.Path(path_type=Path, file_okay=False), help="The server's, where it is here."
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A file with a token of scope pool: work without the data directory, from any machine.",
)
@json_option
def command(
    kind: str | None, queues: tuple[str, ...], data_dir: Path | None, token_file: Path | None, as_json: bool
) -> None:
    """Do what is due now, here, one job after the other, and end when nothing is.

    Jobs that a running worker has already are left to it, and so are paused queues and jobs that wait for a later time.
    Ctrl-C hands the job in hand back.
    """
    server_libraries.need(*_NEEDED)
    if kind and queues:
        raise click.UsageError("a kind has its own queue; give --kind or --queue")
    server = Server(load())
    settings = _settings(server, queues, data_dir, token_file)
    before = [queue for queue in _queues(server) if not queues or queue["queue"] in queues]
    due = sum(queue["due"] for queue in before if not queue["paused"])
    done = foreground.run(
        settings,
        kind=kind or "",
        due=0 if kind else due,
        quiet=as_json,
        about=lambda job: _about(server, job),
    )
    if done.code and not done.jobs:
        fail(_Refusal(done, settings), as_json=as_json)
    left = [queue for queue in _left(server) if queue["pending"] or queue["running"] or queue["paused"]]
    emit({**done.as_json(), "left": left}, as_json=as_json, text=lambda: _summary(done, left))
    sys.exit(_code(done))


def _settings(
    server: Server, queues: tuple[str, ...], data_dir: Path | None, token_file: Path | None
) -> config.Settings:
    overrides = {
        "data_dir": data_dir,
        "pool_queues": queues or None,
        "worker_name": f"work-{os.getpid()}",
        "pool_token_file": str(token_file.expanduser().absolute()) if token_file else None,
        "off_data_host": True if token_file else None,
    }
    try:
        settings = config.load(overrides)
    except Invalid as error:
        _refuse(str(error))
    if not settings.gate_url:
        settings = replace(settings, gate_url=plain_url(server.url))
    file = settings.effective_pool_token_file
    if not os.access(file, os.R_OK):
        _refuse(
            f"cannot read a pool token in {file}. On the server's machine name its data directory with --data-dir; "
            "elsewhere give --token-file with a token of: memoryd tokens create --scope pool --name THIS-MACHINE"
        )
    return settings


def _queues(server: Server) -> list[dict[str, Any]]:
    """Empty where this client may not read: a worker needs no more than its pool token."""
    try:
        return server.get("/api/v1/queues")
    except ServerError as error:
        if error.exit_code == 3:
            raise
        return []


def _left(server: Server) -> list[dict[str, Any]]:
    try:
        return _queues(server)
    except ServerError:
        return []  # it went away meanwhile; what was done is told all the same


def _about(server: Server, job_id: str) -> dict[str, Any]:
    """The job after its turn; empty where it cannot be looked at."""
    try:
        return jobs.one(server, job_id)
    except ServerError:
        return {}


def _summary(done: foreground.Done, left: list[dict[str, Any]]) -> None:
    counts = ", ".join(f"{count} {word}" for word, count in done.counts().items())
    click.echo(
        f"{len(done.jobs)} {'job' if len(done.jobs) == 1 else 'jobs'} done: {counts}."
        if counts
        else "Nothing was due."
    )
    if done.why != foreground.NOTHING_DUE:
        click.echo(f"{visible(done.why)}.", err=True)
    for queue in left:
        click.echo(f"left: {jobs.queue_line(queue)}", err=True)


def _code(done: foreground.Done) -> int:
    if done.was_stopped:
        return _INTERRUPTED
    if done.code:
        return 3 if done.code == foreground.AWAY_CODE else done.code
    return 1 if done.went_wrong else 0


def _refuse(sentence: str) -> NoReturn:
    click.echo(f"memoryd: {sentence}", err=True)
    sys.exit(_BAD_SETTING)

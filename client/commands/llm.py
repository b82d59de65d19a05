"""`memoryd llm`: whether the configured models answer, what they cost, and a person's word on them."""

from __future__ import annotations

from typing import Any

import click

from client import jobs
from client.output import emit, fail, json_option, list_scope_options, table
from client.server import Server, ServerError
from client.settings import load
from memory_core import limits
from memory_core.domain.job import Failure

_COLUMNS = ("day", "project", "kind", "model", "calls", "failed", "in", "out", "cached", "money")


@click.group()
def command() -> None:
    """Language models and embedders: test, usage, pause, resume."""


@command.command()
@click.option(
    "--seconds", type=click.IntRange(1, 3600), default=120, show_default=True, help="How long to wait."
)
@json_option
def test(seconds: int, as_json: bool) -> None:
    """Ask the configured models for something tiny: are they reached, do they answer in a given form, what did it cost?

    It runs as a job of a pool worker, under the budget. Exit code 1 when a model fails.
    """
    server = Server(load())
    state = server.get("/api/v1/models")
    if state["state"] == "paused":
        fail(
            ServerError(
                f"{state_line(state)}; resume them first: memoryd llm resume", code="paused", status=409
            ),
            as_json=as_json,
        )
    job_id = server.request("POST", "/api/v1/models/test", body={})[0]["job"]
    job = jobs.ended(server, job_id, seconds=seconds, quiet=as_json)
    if job["state"] != "completed":
        why = job["last_error"] or "it was cancelled"
        if state["state"] != "off" and why == Failure.NO_PROVIDER.sentence:
            why = f"{why} for the pool worker: give it the same [models] as the server"
        error = ServerError(f"the check {job['state']}: {why}", code="check_failed", status=409)
        fail(error, as_json=as_json)
    found = job["result"]
    emit(found, as_json=as_json, text=lambda: _tell(found))
    if not all(one is None or one["ok"] for one in found.values()):
        raise SystemExit(1)


@command.command()
@click.option("--days", type=click.IntRange(1, limits.USAGE_DAYS_MAX), default=1, show_default=True)
@list_scope_options
@json_option
def usage(days: int, workspace: str | None, project: str | None, as_json: bool) -> None:
    """Show tokens and money by day (UTC), project, kind and model, and how the budget stands."""
    server = Server(load())
    state = server.get("/api/v1/models")
    rows = server.get("/api/v1/models/usage", days=days, workspace=workspace, project=project)

    def text() -> None:
        for line in (
            state_line(state),
            *(f"warning: {sentence}" for sentence in state.get("warnings", ())),
            *_stop_lines(state),
            _today_line(state),
            *_waiting_lines(state),
        ):
            click.echo(line, err=True)
        table(_COLUMNS, (_row(row, state["currency"]) for row in rows), empty="No call.", cut="model")

    emit({"state": state, "usage": rows}, as_json=as_json, text=text)


@command.command()
@click.option("--reason", default="", help="Why, for those who wonder.")
@json_option
def pause(reason: str, as_json: bool) -> None:
    """Grant no call of a model until `memoryd llm resume`. Jobs wait; nothing is lost."""
    answer = Server(load()).request("POST", "/api/v1/models/pause", body={"reason": reason})[0]
    said = "Models are paused." if answer.get("changed") else "Models were paused already."
    emit(answer, as_json=as_json, text=lambda: click.echo(said))


@command.command()
@json_option
def resume(as_json: bool) -> None:
    """Grant calls again, as far as the budget goes; jobs that wait look again at once."""
    server = Server(load())
    answer = server.request("POST", "/api/v1/models/resume", body={})[0]
    state = server.get("/api/v1/models")

    def text() -> None:
        click.echo("Models go on." if answer.get("changed") else "Models were not paused.")
        if state["state"] not in ("on", "off"):
            click.echo(state_line(state))

    emit({**answer, "state": state["state"]}, as_json=as_json, text=text)


def state_line(state: dict[str, Any]) -> str:
    """`models: budget reached until 2026-01-02T00:00:00Z (…)`."""
    if state["state"] == "off":
        return "models: off; name a provider in the configuration file under [models]"
    names = [
        f"{state[provider]}{':' + state[model] if state[model] else ''}"
        for provider, model in (("provider", "model"), ("embed_provider", "embed_model"))
        if state[provider]
    ]
    if state["state"] == "on":
        return f"models: on ({', '.join(names)})"
    until = f" until {state['until']}" if state["until"] else ""
    why = f" ({state['message']})" if state["message"] else ""
    return f"models: {state['state'].replace('_', ' ')}{until}{why}"


def _stop_lines(state: dict[str, Any]) -> list[str]:
    """What stops one project or one kind only."""
    return [
        f"  {stop['workspace']}/{stop['project']}{' ' + stop['kind'] if stop['kind'] else ''}:"
        f" {stop['reason']} until {stop['until'] or 'a person acts'}"
        for stop in state["stops"]
        if stop["project"] or stop["kind"]
    ]


def _today_line(state: dict[str, Any]) -> str:
    today, caps, reserved = state["today"], state["budget"], state["today"]["reserved"]
    words = [f"{today['tokens']:,} of {_cap(caps['tokens_per_day'])} tokens"]
    money = f"{today['money']:.4f} {state['currency']}"
    words.append(money if caps["money_per_day"] is None else f"{money} of {caps['money_per_day']:.4f}")
    words.append(f"{today['calls']} calls")
    if reserved["calls"]:
        words.append(f"{reserved['tokens']:,} tokens reserved by {reserved['calls']} open calls")
    return f"today (UTC): {', '.join(words)}"


def _waiting_lines(state: dict[str, Any]) -> list[str]:
    left_out = sum(row["count"] for row in state["refused_today"] if row["reason"] == "backlog")
    lines = [f"{state['jobs_waiting']} jobs wait for the budget"] if state["jobs_waiting"] else []
    if left_out:
        lines.append(f"{left_out} jobs were left out today, because too many wait")
    if not state["priced"]:
        lines.append(
            f"{state['provider']}:{state['model']} has no price: its calls count as 0 {state['currency']}"
        )
    return lines


def _row(row: dict[str, Any], currency: str) -> tuple[Any, ...]:
    failed = row["failed"] + row["lost"]
    money = f"{row['money']:.4f} {currency}" + (" (some unpriced)" if row["unpriced"] else "")
    return (
        row["day"],
        jobs.project_of(row),
        row["kind"],
        f"{row['provider']}:{row['model']}",
        row["calls"],
        failed or "",
        f"{row['input_tokens']:,}",
        f"{row['output_tokens']:,}",
        f"{row['cached_tokens']:,}",
        money,
    )


def _cap(cap: int | None) -> str:
    return "unlimited" if cap is None else f"{cap:,}"


def _tell(found: dict[str, Any]) -> None:
    for title, one in (("language model", found["language"]), ("embedder", found["embedding"])):
        if one is None:
            continue
        name = f"{one['provider']}:{one['model']}" if one["provider"] else "cannot be used"
        if not one["ok"]:
            click.echo(f"{title} {name}: {one['message']}")
        elif title == "embedder":
            click.echo(
                f"{title} {name}: works ({one['seconds']:g} s, vectors of {one['dimensions']} numbers)"
            )
        else:
            mended = ", after a repair" if one["repairs"] else ""
            tokens = f"{one['input_tokens']} tokens in, {one['output_tokens']} out"
            click.echo(
                f"{title} {name}: works, structured answers too{mended} ({one['seconds']:g} s, {tokens})"
            )

"""`memoryd status`: what the server is and how it is doing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import click

from client.jobs import lasting
from client.output import emit, json_option, scope_options, visible
from client.server import Server
from client.settings import load
from client.spool import Spool
from memory_core import limits

#: Parts that have a line of their own, in this order.
_PARTS = ("broker", "writer", "disk", "wiki", "git", "models")
_WIDTH = 10


@click.command()
@scope_options
@json_option
def command(workspace: str | None, project: str | None, as_json: bool) -> None:
    """Say whether memoryd works, what it holds and what waits. --json tells every detail."""
    settings = load()
    status = Server(settings).tool("memory_status", workspace=workspace, project=project)
    status["spool"] = _spool(Spool(settings.spool_dir))
    emit(status, as_json=as_json, text=lambda: _print(status))


def _spool(spool: Spool) -> dict[str, Any]:
    """What this machine's hooks kept and did not deliver yet: `waiting`, `oldest_age_seconds`, `refused`."""
    return {
        "waiting": len(spool.names()),
        "oldest_age_seconds": spool.oldest_seconds(time.time_ns() // 1000),
        "refused": len(spool.rejected()),
    }


def _undelivered(spool: dict[str, Any]) -> str:
    """What to do about this machine's events; empty where all are delivered or about to be."""
    if (spool["oldest_age_seconds"] or 0.0) > limits.SPOOL_WAIT_SECONDS:
        waits = f"the oldest for {lasting(spool['oldest_age_seconds'])}"
        return (
            f"{_many(spool['waiting'], 'event')} of this machine not delivered, {waits}: memoryd hook --drain"
        )
    return f"{_many(spool['refused'], 'event')} refused: memoryd spool list" if spool["refused"] else ""


def _print(status: dict[str, Any]) -> None:
    health = status["health"]
    is_well = status["status"] == "ok" and not _undelivered(status["spool"])
    click.secho(f"memoryd {health.get('version', '')} at {health.get('url', '?')}: ", bold=True, nl=False)
    click.secho(
        "all is well" if is_well else "something is wrong", fg="green" if is_well else "red", bold=True
    )
    for name, text in _lines(status, health):
        click.echo(f"{name:<{_WIDTH}} {visible(text)}")


def _lines(status: dict[str, Any], health: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "data", str(health.get("data_dir", "?"))
    counts = status["counts"]
    yield (
        "holds",
        f"{status['scope']}: {_many(counts['pages_latest'], 'page')} ({_many(counts['pages_all'], 'version')}),"
        f" {_many(counts['sessions'], 'session')} ({counts['sessions_open']} open),"
        f" {_many(counts['observations'], 'hook event')}, {_many(counts['handoffs_open'], 'handoff')} waiting",
    )
    yield "last event", _time(status.get("last_event"))
    yield "waits", _waiting(status)
    if said := _undelivered(status["spool"]):
        yield "hooks", said
    for part in _PARTS:
        if isinstance(health.get(part), dict):
            yield part, _part(part, health[part])
    if isinstance(vectors := health.get("vectors"), dict):
        yield "vectors", _vectors(vectors)
    wiki = health.get("wiki") or {}
    for row in wiki.get("troubles", []):
        yield "", f"{row['file']}: {row['trouble']}"
    for folder, why in (wiki.get("strangers") or {}).items():
        yield "", f"{folder}: {why}"
    hidden = wiki.get("troubles_in_all", 0) - len(wiki.get("troubles", []))
    if hidden > 0:
        yield "", f"and {hidden} files more: status --json, or /api/v1/wiki"


def _vectors(state: dict[str, Any]) -> str:
    """`412 of 2,000, about 3 min left, by local:all-minilm-l6-v2`."""
    if "progress" not in state:
        return "off; search goes by words" if state["state"] == "off" else str(state.get("reason", "unknown"))
    name = state["model"].partition("@")[0]
    said = f"{state['progress']}, by {state['provider']}:{name}"
    return f"{said}; {state['last_error']}" if state["state"] == "waiting" and state["last_error"] else said


def _waiting(status: dict[str, Any]) -> str:
    backlog = status.get("backlog") or {}
    said: list[str] = []
    if entries := backlog.get("entries"):
        said.append(f"{_many(entries, 'command')} (the oldest for {backlog['oldest_age_seconds']:.0f} s)")
    if files := status.get("files_pending"):
        said.append(f"{_many(files, 'file')} of the wiki")
    return ", ".join(said) or "nothing"


def _part(name: str, said: dict[str, Any]) -> str:
    """`ok` and the one fact that people ask for, or what is wrong and why."""
    status = str(said.get("status", "ok"))
    if status != "ok":
        reasons = [said.get("away"), said.get("reason"), _held(said), _silent(said)]
        return "; ".join([status, *(str(reason) for reason in reasons if reason)])
    return ", ".join(filter(None, ("ok", _FACTS[name](said))))


def _held(said: dict[str, Any]) -> str:
    rows = said.get("held") or []
    named = [
        f"{row['missing']} of {row['pages']} pages of {row['project']} ({row['reason']})" for row in rows
    ]
    return "; ".join(named)


def _silent(said: dict[str, Any]) -> str:
    seconds = said.get("silent_seconds")
    return f"silent for {seconds:.0f} s" if isinstance(seconds, int | float) else ""


def _wiki(said: dict[str, Any]) -> str:
    watcher = said.get("watcher") or {}
    told = [
        f"{_many(said.get('files', 0), 'file')} of {_many(said.get('pages', 0), 'page')}",
        "changes are seen at once" if watcher.get("state") == "watching" else "looked at every 30 s",
    ]
    unwritten = said.get("unwritten", 0)
    left = [
        (said.get("waiting", 0) - unwritten, "still changing"),
        (unwritten, "to be written"),
        (said.get("broken"), "no text"),
    ]
    return ", ".join([*told, *(f"{number} {what}" for number, what in left if number)])


def _git(said: dict[str, Any]) -> str:
    told = [f"last commit {str(said['last_commit'])[:12]}" if said.get("last_commit") else "no commit yet"]
    if said.get("pending_files"):
        told.append(f"{_many(said['pending_files'], 'file')} to be committed")
    if held := said.get("held_back"):
        told.append(f"not committed because of a secret in them: {', '.join(held)}")
    return ", ".join([*told, *filter(None, (said.get("reason"), said.get("note")))])


def _models(said: dict[str, Any]) -> str:
    if said.get("state") == "off":
        return "no provider (none is needed)"
    named = [f"{said[kind]} {said.get(model) or ''}".strip() for kind, model in _MODELS if said.get(kind)]
    return ", ".join([str(said.get("state")), *named, *filter(None, (said.get("message"),))])


_MODELS = (("provider", "model"), ("embed_provider", "embed_model"))
_FACTS = {
    "broker": lambda said: (
        f"{'embedded' if said.get('is_embedded') else 'external'} {said.get('version', '')}".strip()
    ),
    "writer": lambda said: f"process {said['pid']}" if said.get("pid") else "",
    "disk": lambda said: (
        f"room for {said['backlog_room_bytes'] / 1e9:.1f} GB of events"
        if said.get("backlog_room_bytes")
        else ""
    ),
    "wiki": _wiki,
    "git": _git,
    "models": _models,
}


def _many(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _time(text: str | None) -> str:
    return f"{text[:10]} {text[11:19]} UTC" if text else "none yet"

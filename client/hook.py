"""The shim that agent clients run at every hook: redact, spool, answer, and let a detached drain deliver.

It returns at once and always with exit code 0: memory must never be the reason why an agent stops.
Only what the client takes as context is printed to standard output; warnings go to standard error.
Light: nothing here imports more than the standard library, and little of that.
"""

from __future__ import annotations

import json
import os
import sys
import time

from client import context
from client import host as hosts
from client import marker as markers
from client import payload as payloads
from client import settings as client_settings
from client.place import repository_of
from client.session_state import SessionState
from client.settings import ClientSettings
from client.spool import Spool
from memory_core import limits

#: What a request for context says, in the words of the event.
_ASKED = (
    *("agent", "session_id", "cwd", "home", "repo_path", "project_strategy", "workspace", "project"),
    *("default_global", "briefing", "briefing_budget", "recall_entries", "recall_bytes", "recall_confidence"),
)
#: Fields about what is given at a session's start only.
_AT_START = ("briefing", "recall")


def run() -> None:
    """Entry point of the launcher: `memoryd-hook <client> <event> [--source NAME]`, or `--drain`."""
    sys.exit(main(sys.argv[1:]))


def main(arguments: list[str]) -> int:
    """Handle one hook event from standard input: always 0. `--drain` alone says how it ended."""
    client = arguments[0] if arguments else ""
    answer = ""
    try:
        _open_missing_streams()
        if arguments[:1] == ["--drain"]:
            return _drain_now()
        if arguments[:1] == ["--check-capture"]:
            _print(_check_capture(dict(os.environ)))
            return 0
        if len(arguments) < 2:
            _warn("usage: memoryd hook <client> <event> [--source NAME]")
            return 0
        answer = _handle(client, arguments[1], _source(arguments[2:]), dict(os.environ))
    except Exception as error:  # whatever it is, the agent must go on
        _warn(f"this event was not kept: {type(error).__name__}: {_reason(error)}")
    _print(answer or context.nothing(client))
    return 0


def _handle(client: str, event: str, source: str, environ: dict[str, str]) -> str:
    settings = client_settings.load(environ)
    if settings.problem:
        _warn(settings.problem)
    now_us = time.time_ns() // 1000
    home = client_settings.home_of(environ)
    body = payloads.parse(_standard_input())
    agent = client
    if host := hosts.borrower_of(client, body, environ):
        if hosts.has_own_hooks(host, home):
            return ""  # it comes from the host's own hook too
        agent, source = host, f"{client}-hooks"
    session = payloads.session_of(body, environ)
    cwd = payloads.directory_of(body, environ) or _working_directory()
    marker = _marker(cwd, home)
    if marker.capture is not None:
        from client import policy

        left = policy.left_of(body, marker, cwd=cwd, home=home)
        if left is None:
            return ""
        body = left
    state = SessionState(settings.state_dir, agent, session or "none")
    seq, given = state.next_seq(now_us)
    told = {
        "event": event,
        "agent": agent,
        "session_id": session,
        "cwd": cwd,
        "home": home,
        **_whereabouts(marker, cwd),
        "source": source,
        "host": hosts.host_of(environ),
        "seq": str(seq),
        "occurred_at": str(now_us),
    }
    spool = Spool(settings.spool_dir)
    # What the server knows of this event is what it is asked with later, redacted parts included.
    kept = _keep(spool, settings, body, told, now_us=now_us, seq=seq)
    asked = {name: kept[name] for name in _ASKED if name in kept}
    text = _context(event, spool, settings, state, asked, given=given) if session else ""
    _start_drain(spool, settings)
    return context.answer(client, event, text) if text else ""


def _marker(cwd: str, home: str) -> markers.Marker:
    marker = markers.marker_for(cwd, home)
    if marker.problem:
        _warn(marker.problem)
    return marker


def _whereabouts(marker: markers.Marker, cwd: str) -> dict[str, str]:
    """The project: as the marker names it, else by the repository around the directory."""
    repository = repository_of(cwd)
    strategy = "repo-root" if repository and "project" not in marker.scope else ""
    return {"repo_path": repository, "project_strategy": strategy, **marker.told}


def _check_capture(environ: dict[str, str]) -> str:
    """How the policy of the payload's directory decides on it; nothing is kept."""
    from client import policy

    home = client_settings.home_of(environ)
    body = payloads.parse(_standard_input())
    cwd = payloads.directory_of(body, environ) or _working_directory()
    return json.dumps(policy.decision_on(body, markers.marker_for(cwd, home), cwd=cwd, home=home))


def _keep(
    spool: Spool,
    settings: ClientSettings,
    body: dict[str, object],
    fields: dict[str, str],
    *,
    now_us: int,
    seq: int,
) -> dict[str, str]:
    """Redact, then spool; returns the redacted `fields`. Fails closed: without redaction nothing is written."""
    from memory_core.redaction.client import redact_json

    redacted = redact_json({"body": payloads.pruned(body), "query": fields}, settings.redaction_key)
    kept = payloads.fitted(redacted.value)
    if not isinstance(kept, dict) or not isinstance(kept.get("query"), dict):
        raise payloads.Unreadable("too large to keep")
    spool.add(query=payloads.query(kept["query"]), body=kept["body"], now_us=now_us, seq=seq)
    return kept["query"]


def _context(
    event: str,
    spool: Spool,
    settings: ClientSettings,
    state: SessionState,
    asked: dict[str, str],
    *,
    given: bool,
) -> str:
    """The recalled context that is due at this event; empty when there is none."""
    if context.is_start(event):
        from client import drain

        drain.drain_briefly(spool, settings, seconds=limits.SESSION_START_DRAIN_SECONDS)
        asked, seconds = {**asked, "recall": "1"}, limits.CONTEXT_FETCH_SECONDS
    elif context.is_prompt(event) and not given:
        # Brief and knowledge belong to the start; what is asked for now is a handoff that came later.
        asked = {name: value for name, value in asked.items() if not name.startswith(_AT_START)}
        seconds = limits.PROMPT_CONTEXT_SECONDS
    else:
        return ""
    text = _handoff(settings, asked, seconds)
    if context.is_prompt(event) or (text and not _is_without_handoff(text)):
        state.mark_given()  # the first prompt asks once, whatever comes of it
    return text


def _is_without_handoff(text: str) -> bool:
    """Whether it is knowledge and the project's brief alone: a handoff stands before them."""
    first = text.partition("\n")[0]
    return "; source: brief of " in first or "; source: knowledge of " in first


def _handoff(settings: ClientSettings, asked: dict[str, str], seconds: float) -> str:
    from client import gate
    from memory_core.domain.recalled import shorten

    try:
        answer = gate.request(
            "GET",
            settings.url,
            f"/handoff?{payloads.query(asked)}",
            token=settings.token(),
            timeout_seconds=seconds,
        )
    except gate.Unusable as error:
        _warn(str(error))
        return ""
    except gate.NoAnswer:
        return ""
    if answer.status != 200:
        if answer.status in (401, 403):
            _warn("the server refused this client's token; run `memoryd install-hooks` again")
        return ""
    text = answer.body.decode("utf-8", "replace")
    return shorten(text, limits.INJECTED_CONTEXT_MAX_CHARS) if text.strip() else ""


def _start_drain(spool: Spool, settings: ClientSettings) -> None:
    if spool.names():
        from client import detached

        detached.start(settings)


def _drain_now() -> int:
    """The exit code: 0 when nothing waits any more, 4 for a token that is not accepted, 3 when nobody answers, else 1."""
    from client import drain

    settings = client_settings.load()
    spool = Spool(settings.spool_dir)
    report = drain.deliver(spool, settings, seconds=limits.DETACHED_DRAIN_SECONDS)
    left = len(spool.names())
    elsewhere = "another drain was sending all the time" if report.is_elsewhere else ""
    why = report.stopped or elsewhere or (f"{settings.url} did not take them yet" if left else "")
    said = f"{report.delivered} delivered, {report.rejected} set aside, {left} waiting"
    sys.stdout.write(f"{said}: {why}\n" if left else f"{said}\n")
    if not left:
        return 0
    return 4 if report.status in (401, 403) else 1 if report.status else 3


def _source(arguments: list[str]) -> str:
    """Which configuration runs this hook; two of them may deliver one event twice."""
    return arguments[1] if len(arguments) > 1 and arguments[0] == "--source" else "user"


def _open_missing_streams() -> None:
    """Give a host's closed streams a place: else the next opened file gets their number, and what is printed."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))


def _standard_input() -> bytes:
    """What the host sent; one that never closes its end is listened to for `HOOK_STDIN_SECONDS`."""
    try:
        number = sys.stdin.fileno()
    except OSError:  # no real file
        return sys.stdin.buffer.read(limits.HOOK_STDIN_MAX_BYTES + 1)
    import select

    data = bytearray()
    end = time.monotonic() + limits.HOOK_STDIN_SECONDS
    while len(data) <= limits.HOOK_STDIN_MAX_BYTES:
        if not select.select([number], [], [], max(0.0, end - time.monotonic()))[0]:
            break
        piece = os.read(number, limits.MIB)
        if not piece:
            break
        data += piece
    return bytes(data)


def _working_directory() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""


def _reason(error: Exception) -> str:
    """What may be said on standard error: never a part of the payload."""
    if isinstance(error, payloads.Unreadable):
        return str(error)
    return error.strerror or "" if isinstance(error, OSError) else "please report this"


def _warn(text: str) -> None:
    try:
        sys.stderr.write(f"memoryd: {text}\n")
        sys.stderr.flush()
    except OSError:
        pass


def _print(text: str) -> None:
    try:
        sys.stdout.buffer.write(text.encode("utf-8", "replace") + (b"\n" if text else b""))
        sys.stdout.buffer.flush()
    except OSError:
        # The client has stopped listening; without this Python would complain at its exit, with code 120.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

"""The demo: three short recorded sessions of two agents go through the real hook path, then memory is asked.

Each event starts the shim in a process of its own, exactly as an agent client does, and is delivered from
the spool. The events land in a project of their own, `memoryd-demo`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from client import drain
from client.launcher import script
from client.server import Server, ServerError
from client.settings import ClientSettings
from client.spool import Spool

PROJECT = "memoryd-demo"
QUESTION = "why are fees rounded half-even"
_COMMITTED_SECONDS = 20.0


@dataclass(frozen=True, kw_only=True)
class Step:
    """One hook event of the recording, ready to be sent."""

    client: str
    event: str
    payload: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Proof:
    """What memory gave back: the answer of the search, and the context a new session was handed."""

    search: dict[str, Any]
    handoff: str
    events: int
    seconds: float


def recording(cwd: Path) -> list[Step]:
    """The recorded sessions, with ids of this run."""
    sessions = json.loads(Path(__file__).with_name("demo_sessions.json").read_text(encoding="utf-8"))
    return [step for session in sessions for step in _steps(session, cwd)]


def run(settings: ClientSettings, told: Callable[[Step], None]) -> Proof:
    """Send the recording, wait until it is committed, then ask. `ServerError` when the server is away."""
    server = Server(settings)
    server.get("/api/v1/status")
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="memoryd-demo-") as directory:
        home = Path(directory)
        launcher = home / "memoryd-hook"
        launcher.write_text(script(config_file=Path(settings.config_file)), encoding="utf-8")
        launcher.chmod(0o700)
        cwd = home / PROJECT
        cwd.mkdir()
        steps = recording(cwd)
        for step in steps:
            _hook(launcher, step, settings)
            told(step)
        _deliver(settings)
        search = _await_hits(server)
        handoff = _next_session(launcher, cwd, settings)
    return Proof(search=search, handoff=handoff, events=len(steps), seconds=time.monotonic() - started)


def _steps(session: dict[str, Any], cwd: Path) -> Iterator[Step]:
    session_id = str(uuid.uuid4())
    run_suffix = session_id[:8]
    for event, fields in session["events"]:
        payload = {"session_id": session_id, "cwd": str(cwd), "hook_event_name": event, **fields}
        if "tool_use_id" in payload:
            payload["tool_use_id"] += run_suffix
        yield Step(client=session["client"], event=event, payload=payload)


def _hook(launcher: Path, step: Step, settings: ClientSettings) -> str:
    """Run the shim as an agent client runs it; what it prints is what the agent would be given."""
    ended = subprocess.run(
        [str(launcher), step.client, step.event, "--source", "demo"],
        input=json.dumps(step.payload).encode(),
        env={
            "HOME": str(Path.home()),
            "PATH": "/usr/bin:/bin",
            "MEMORYD_URL": settings.url,
            "MEMORYD_TOKEN": settings.token(),
            "MEMORYD_CLIENT_CONFIG": settings.config_file,
            "XDG_STATE_HOME": str(Path(settings.state_dir).parent),
        },
        stdout=subprocess.PIPE,
        stderr=sys.stderr,
        timeout=30,
        check=True,
    )
    return ended.stdout.decode("utf-8", "replace")


def _deliver(settings: ClientSettings) -> None:
    spool = Spool(settings.spool_dir)
    end = time.monotonic() + _COMMITTED_SECONDS
    while spool.names() and time.monotonic() < end:
        drain.drain_briefly(spool, settings, seconds=2.0)
        time.sleep(0.05)  # another drain may hold the lock; it is at the same work


def _await_hits(server: Server) -> dict[str, Any]:
    end = time.monotonic() + _COMMITTED_SECONDS
    while True:
        try:
            answer = server.tool("memory_query", query=QUESTION, project=PROJECT, limit=3)
        except ServerError as error:
            if error.code != "not_found" or time.monotonic() > end:
                raise
            answer = {}
        if answer.get("hits") or time.monotonic() > end:
            return answer
        time.sleep(0.1)


def _next_session(launcher: Path, cwd: Path, settings: ClientSettings) -> str:
    """What a new Codex session in the same directory is given at its start."""
    payload = {
        "session_id": str(uuid.uuid4()),
        "cwd": str(cwd),
        "hook_event_name": "SessionStart",
        "source": "startup",
    }
    printed = _hook(launcher, Step(client="codex", event="SessionStart", payload=payload), settings)
    # Left open it would be the session that questions without a project are about.
    end = {**payload, "hook_event_name": "SessionEnd", "reason": "other"}
    _hook(launcher, Step(client="codex", event="SessionEnd", payload=end), settings)
    _deliver(settings)
    if not printed.strip():
        return ""
    return str(json.loads(printed)["hookSpecificOutput"]["additionalContext"])

"""From nothing to the first found memory, and from a death to serving again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

from scripts.bench_parts.figures import Result, at_most
from scripts.bench_parts.machine import ROOT
from scripts.bench_parts.parts import Bench, parts
from scripts.bench_parts.stack import Stack
from tests.e2e.running import Running, wait_until

FIRST_MEMORY = at_most(60)
SERVING = at_most(10)
RESPAWN = at_most(1)
_PATIENCE_SECONDS = 300
_RESPAWN_PATIENCE_SECONDS = 30


@parts.add("start")
def start(bench: Bench) -> Result:
    """A clone, `scripts/up`, `memoryd demo`; then each process of a tree is killed."""
    result = Result(part="start")
    bench.say("start: filling the cache of packages")
    _set_up(_clone(bench.directory / "warm"))
    began = time.monotonic()
    bench.say("start: a clone, its environment, a first memory")
    clone = _clone(bench.directory / "clone")
    _first_memory(result, bench, clone, began)
    bench.say("start: serving, and serving again")
    _deaths(result, bench)
    return result


def _clone(place: Path) -> Path:
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(place)], check=True)
    return place


def _set_up(clone: Path) -> None:
    subprocess.run([clone / "scripts" / "up", "--setup-only"], check=True, stderr=subprocess.DEVNULL)


def _first_memory(result: Result, bench: Bench, clone: Path, began: float) -> None:
    memoryd = Running(bench.directory / "first")
    memoryd.home.mkdir()
    environ = _environment(memoryd)
    up = subprocess.Popen(
        [clone / "scripts" / "up", "--data-dir", str(memoryd.data_dir), "--port", str(memoryd.port)],
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=(memoryd.home / "terminal.log").open("ab"),
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        memoryd.wait_ready(_PATIENCE_SECONDS)
        result.add("clone → serving", time.monotonic() - began, "s")
        demo = subprocess.run(
            [clone / ".venv" / "bin" / "memoryd", "demo", "--json"],
            check=False,
            env=environ,
            capture_output=True,
            text=True,
        )
        result.add("clone → first found memory", time.monotonic() - began, "s", FIRST_MEMORY)
        if demo.returncode != 0:
            result.complaints.append(f"memoryd demo ended with {demo.returncode}: {demo.stderr[-500:]}")
            return
        answer = json.loads(demo.stdout)
        result.verified.append(
            f"the demo's {answer['events']} events: found by search, handed to a new session"
        )
    finally:
        up.send_signal(signal.SIGTERM)
        try:
            up.wait(40)
        except subprocess.TimeoutExpired:
            up.kill()


def _environment(memoryd: Running) -> dict[str, str]:
    """A home of its own for memoryd; the packages' cache stays where it is."""
    home = str(memoryd.home)
    cache = subprocess.run(
        ["python3", "-m", "pip", "cache", "dir"], capture_output=True, text=True, check=False
    ).stdout.strip()
    return {
        "PATH": os.environ["PATH"],
        "MEMORYD_MODELS__EMBED_PROVIDER": "none",
        "HOME": home,
        **({"PIP_CACHE_DIR": cache} if cache else {}),
        **{name: value for name, value in os.environ.items() if name.startswith("PIP_")},
        "MEMORYD_URL": memoryd.url,
        "MEMORYD_TOKEN_FILE": str(memoryd.data_dir / "token"),
        "MEMORYD_DATA_DIR": str(memoryd.data_dir),
    }


def _deaths(result: Result, bench: Bench) -> None:
    stack = Stack(bench.directory / "deaths")
    began = time.monotonic()
    with stack:
        result.add("first `up` → serving", time.monotonic() - began, "s", SERVING)
        back: dict[str, list[float]] = {}
        serving: list[float] = []
        for _ in range(bench.sizes.respawns):
            for role in ("writer", "web", "pool", "beat", "broker"):
                time.sleep(4)  # a steady life ends a row of deaths, so that no pause is counted
                died_at, respawned = _kill(stack, role)
                back.setdefault(role, []).append(respawned)
                wait_until(stack.is_ready, seconds=60, saying=f"ready after the {role} died")
                serving.append(time.monotonic() - died_at)
        for role, seconds in back.items():
            result.add(f"{role}: death → a new process", max(seconds), "s", RESPAWN)
        result.add("death → ready, the slowest", max(serving), "s", SERVING)
    result.verified.append(f"{len(serving)} processes killed, each came back")


def _kill(stack: Stack, role: str) -> tuple[float, float]:
    """When it died, and after how long another process of that role lived."""
    old = _supervised(stack)[role]
    died_at = time.monotonic()
    os.kill(old, signal.SIGKILL)
    while _supervised(stack).get(role, old) == old:
        assert time.monotonic() - died_at < _RESPAWN_PATIENCE_SECONDS, f"no other {role}"
        time.sleep(0.005)
    return died_at, time.monotonic() - died_at


def _supervised(stack: Stack) -> dict[str, int]:
    """Name → pid of the supervisor's children, as its roster says."""
    roster = json.loads((stack.data_dir / "run" / "children.json").read_bytes())
    return {child["name"]: child["pid"] for child in roster["children"]}

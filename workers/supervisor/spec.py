"""What a child of the supervisor is, and the ways to see that it lives."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from memory_core import limits
from memory_core.clock import Clock
from workers import broker, heartbeat


@dataclass(frozen=True, kw_only=True)
class Sign:
    """A sign of life: the monotonic second until which silence is in order, and whether others may rely on it."""

    at: float
    ready: bool


#: Asked with a pid: the last sign of life of exactly that process, or None.
Probe = Callable[[int], Sign | None]


#: What the data directory is to a child: it makes and keeps it, it works in one that its owner made, or it needs no more
#: than a directory for its own files.
Access = Literal["owns", "opens", "none"]


@dataclass(frozen=True, kw_only=True)
class ChildSpec:
    """One row of the supervisor's table."""

    name: str
    #: `("-m", module, …)` or `(program, …)`.
    argv: tuple[str, ...]
    probe: Probe
    access: Access = "opens"
    #: Nobody waits for it: the tree is ready without it.
    is_optional: bool = False
    #: It may keep its own files outside of the data directory (`state_dir`): no other process looks for them there.
    may_live_apart: bool = False
    #: Addresses that it listens on; they must be free before anything is started.
    listens: tuple[tuple[str, int], ...] = ()
    #: Called before each start; what it cannot do (`OSError`) is logged, and the child started all the same.
    before_start: Callable[[], None] | None = None
    #: Least time between two probes, seconds.
    probe_seconds: float = 0.0
    #: Names of rows that must be ready before the first start.
    depends_on: tuple[str, ...] = ()
    #: Silence that is called a hang, seconds.
    hang_seconds: float = limits.HANG_SECONDS
    #: Lower numbers are asked to end first; equal ones together.
    stop_rank: int = 0
    #: What it may take to end before it is killed.
    stop_seconds: float = 10.0
    #: Its output goes into the supervisor's rotated log.
    captured: bool = False


def by_heartbeat(run_dir: Path, name: str) -> Probe:
    """The child writes `run/<name>.heartbeat`."""
    path = heartbeat.heartbeat_file(run_dir, name)

    def probe(pid: int) -> Sign | None:
        beat = heartbeat.read(path)
        if beat is None or beat.pid != pid or beat.is_of_a_former_life:
            return None
        return Sign(at=max(beat.at, beat.busy_until), ready=beat.ready)

    return probe


def by_ping(endpoint: broker.Endpoint, clock: Clock) -> Probe:
    """The broker answers PING."""

    def probe(_pid: int) -> Sign | None:
        return Sign(at=clock.monotonic(), ready=True) if broker.answers(endpoint) else None

    return probe


def by_http(host: str, port: int, path: str, clock: Clock) -> Probe:
    """The child answers `GET path` with 200."""
    where = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 — a listener on all is asked on loopback
    name = f"[{where}]" if ":" in where else where
    request = f"GET {path} HTTP/1.0\r\nHost: {name}:{port}\r\n\r\n".encode()

    def probe(_pid: int) -> Sign | None:
        try:
            with socket.create_connection((where, port), timeout=limits.PROBE_TIMEOUT_SECONDS) as connection:
                connection.sendall(request)
                words = connection.recv(64).split(b" ", 2)
        except OSError:
            return None
        ok = len(words) > 1 and words[1] == b"200"
        return Sign(at=clock.monotonic(), ready=True) if ok else None

    return probe

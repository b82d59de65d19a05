"""`python -m workers.health ROW…`: are these processes of the tree well? For the health checks of containers.

Exit 0 when they are; else 1, and a line for each that is not. It looks where the process itself cannot lie about its work:
at its heartbeat, and at the gate's `/readyz`. Standard library only, because it is started every few seconds.
"""

from __future__ import annotations

import http.client
import json
import os
import sys
from collections.abc import Callable, Sequence

from memory_core import config, limits
from memory_core.clock import Clock, SystemClock
from memory_core.config import Settings
from memory_core.errors import CoreError, Invalid
from workers import broker, heartbeat
from workers.supervisor.table import some_of, table

_WELL, _NOT_WELL = 0, 1


def main(names: Sequence[str]) -> int:
    try:
        # Whoever asks for it has it, as with `--only`.
        settings = config.load({"flower": True} if "flower" in names else None)
        found = [f"{name}: {text}" for name in names if (text := trouble(settings, SystemClock(), name))]
        if not names:
            raise Invalid("name the process to look at, for example: python -m workers.health writer")
    except CoreError as error:
        found = [str(error)]
    sys.stdout.write("".join(f"{line}\n" for line in found))
    return _NOT_WELL if found else _WELL


def trouble(settings: Settings, clock: Clock, name: str) -> str | None:
    """What is wrong with one process, None when it is well. Raises `Invalid` for a name that the table does not have."""
    if name in _ASKED:
        return _ASKED[name](settings)
    (row,) = some_of(table(settings, None, clock), (name,))
    beat = heartbeat.read(heartbeat.heartbeat_file(settings.run_dir, name))
    if beat is None:
        return "it has not started"
    if beat.is_of_a_former_life:
        return "it has not started"
    if not beat.ready:
        return "it is not ready yet"
    if not _lives(beat.pid):
        return f"process {beat.pid} is gone"
    silent = beat.silent_seconds(clock.monotonic())
    return f"no sign of life for {silent:.0f} s" if silent > row.hang_seconds else None


def _broker(settings: Settings) -> str | None:
    endpoint = broker.read_endpoint(settings)
    return (
        None
        if endpoint is not None and broker.answers(endpoint, limits.HEALTH_TIMEOUT_SECONDS)
        else "it does not answer PING"
    )


def _web(settings: Settings) -> str | None:
    return _answer(settings.host, settings.effective_probe_port, "/readyz")


#: Those that are asked themselves instead of leaving a heartbeat.
_ASKED: dict[str, Callable[[Settings], str | None]] = {"broker": _broker, "web": _web}


def _answer(host: str, port: int, path: str) -> str | None:
    where = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 — a listener on all is asked on loopback
    connection = http.client.HTTPConnection(where, port, timeout=limits.HEALTH_TIMEOUT_SECONDS)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        status, body = answer.status, answer.read(65_536)
    except (OSError, http.client.HTTPException) as error:
        return f"no answer from {where}:{port} ({type(error).__name__})"
    finally:
        connection.close()
    return None if status == 200 else f"HTTP {status}: {_told(body)}"


def _told(body: bytes) -> str:
    """The parts of an answer of `/readyz` that are not well, else the body's beginning."""
    try:
        checks = json.loads(body)["checks"]
        return "; ".join(f"{part}: {state}" for part, state in checks.items() if state != "ok")
    except (ValueError, KeyError, TypeError, AttributeError):
        return body[:200].decode("utf-8", "replace").strip()


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

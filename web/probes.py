"""`/livez` and `/readyz`: on a thread and a port of their own, so that they answer when the pool is busy.

Livez says whether requests still make progress (the supervisor starts the process again when not);
readyz says whether events can be taken and applied, part by part.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from memory_core import limits
from memory_core.clock import Clock
from web.names import Names

logger = logging.getLogger(__name__)

#: A part's name to its check: None when well, else what is wrong and what to do.
Checks = Mapping[str, Callable[[], "str | None"]]


class Progress:
    """Counts requests under way, so that a pool whose threads all hang can be told from a busy one."""

    def __init__(self, clock: Clock, threads: int = limits.WEB_THREADS) -> None:
        self._clock = clock
        self._threads = threads
        self._lock = threading.Lock()
        self._under_way = 0
        self._last_end = clock.monotonic()

    def begin(self) -> None:
        with self._lock:
            self._under_way += 1
            if self._under_way == 1:
                self._last_end = self._clock.monotonic()

    def end(self) -> None:
        with self._lock:
            self._under_way -= 1
            self._last_end = self._clock.monotonic()

    def moved(self) -> None:
        """A request that is still under way got on."""
        with self._lock:
            self._last_end = self._clock.monotonic()

    def stands_still(self) -> bool:
        """Whether every thread is busy and none has finished anything for `WEB_STILL_SECONDS`."""
        with self._lock:
            still = self._clock.monotonic() - self._last_end
            return self._under_way >= self._threads and still > limits.WEB_STILL_SECONDS


class Probes:
    """Serves the two probes; `start` once per process, after the last fork."""

    def __init__(
        self, *, address: tuple[str, int], names: Names, progress: Progress, checks: Checks, clock: Clock
    ) -> None:
        self._address = address
        self._names = names
        self._progress = progress
        self._checks = checks
        self._clock = clock
        self._server: ThreadingHTTPServer | None = None
        self._stopped = threading.Event()

    @property
    def port(self) -> int:
        """The port in use; 0 until it is bound."""
        return self._server.server_address[1] if self._server is not None else 0

    def start(self) -> None:
        threading.Thread(target=self._serve, name="probes", daemon=True).start()

    def stop(self) -> None:
        self._stopped.set()
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    def answer(self, path: str, headers: Mapping[str, str]) -> tuple[int, dict[str, Any]]:
        """Status and body for a GET of `path`."""
        headers = {name.lower(): value for name, value in headers.items()}
        environ = {"HTTP_HOST": headers.get("host") or ""}
        if headers.get("origin") is not None:
            environ["HTTP_ORIGIN"] = headers["origin"]
        refusal = self._names.refusal(environ)
        if refusal is not None:
            return refusal[0], {"error": refusal[1]}
        if path == "/livez":
            stuck = self._progress.stands_still()
            return (503, {"status": "no request makes progress"}) if stuck else (200, {"status": "ok"})
        if path == "/readyz":
            return self._readiness()
        return 404, {"error": "there are /livez and /readyz"}

    def _readiness(self) -> tuple[int, dict[str, Any]]:
        parts = {name: _checked(name, check) for name, check in self._checks.items()}
        is_ready = all(trouble is None for trouble in parts.values())
        body = {
            "status": "ready" if is_ready else "not ready",
            "checks": {name: trouble or "ok" for name, trouble in parts.items()},
        }
        return (200 if is_ready else 503), body

    def _serve(self) -> None:
        while not self._stopped.is_set():
            try:
                self._server = _Server(self._address, self._handler())
                break
            except OSError as error:
                # A predecessor that is just dying may still hold the port.
                logger.warning(
                    "The probe port cannot be bound; trying again.",
                    extra={"action": "probe_port_busy", "port": self._address[1], "errno": error.errno},
                )
                self._stopped.wait(limits.PROBE_REBIND_SECONDS)
        if self._server is not None:
            self._server.serve_forever(poll_interval=limits.PROBE_REBIND_SECONDS)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        probes = self

        class Handler(BaseHTTPRequestHandler):
            timeout = limits.PROBE_CONNECTION_SECONDS
            server_version = "memoryd"
            sys_version = ""

            def do_GET(self) -> None:
                path = self.path.partition("?")[0]
                status, body = probes.answer(path, dict(self.headers))
                text = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.send_header("Cache-Control", "no-store")
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, format: str, *args: Any) -> None:
                """Probes come every second; they are not logged."""

        return Handler


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        logger.debug("A probe connection broke.", exc_info=True, extra={"action": "probe_broken"})


def _checked(name: str, check: Callable[[], str | None]) -> str | None:
    try:
        return check()
    except Exception as error:
        logger.warning(
            "A readiness check failed.", exc_info=True, extra={"action": "check_failed", "check": name}
        )
        return f"could not be checked ({type(error).__name__})"

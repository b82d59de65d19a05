"""A small real HTTP server that speaks `/pool/*` over jobs in memory, and can be told to fail in every way."""

from __future__ import annotations

import gzip
import hashlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

#: What a fault does with one request: True when it answered (or did not answer) in the place of the gate.
Fault = Callable[["Handler"], bool]


@dataclass
class SmallJob:
    id: str
    kind: str
    queue: str
    input: Any
    run_seconds: float = 30.0
    is_inline: bool = False
    state: str = "pending"
    lease: str = ""
    claims: int = 0
    #: How it ended, each time: (route, body without the lease).
    endings: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    renewals: int = 0


@dataclass
class SmallGate:
    url: str = ""
    jobs: list[SmallJob] = field(default_factory=list)
    #: (route, body, key) of each request that came in.
    asked: list[tuple[str, dict[str, Any], str]] = field(default_factory=list)
    connections: int = 0
    #: Faults by route, each used once, in order.
    faults: dict[str, list[Fault]] = field(default_factory=dict)
    #: What every renewal says from now on.
    cancel: bool = False
    tokens: list[str] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)
    _answers: dict[tuple[str, str], tuple[int, dict[str, Any]]] = field(default_factory=dict)

    def add(self, kind: str, given: Any, *, queue: str = "lint", **more: Any) -> SmallJob:
        with self.changed:
            job = SmallJob(id=f"{len(self.jobs):032x}", kind=kind, queue=queue, input=given, **more)
            self.jobs.append(job)
            return job

    def fail_next(self, route: str, *faults: Fault) -> None:
        self.faults.setdefault(route, []).extend(faults)

    def wait(self, happened: Callable[[], object], seconds: float = 20.0) -> None:
        """Until something is so; fails the test when it does not come to be."""
        with self.changed:
            assert self.changed.wait_for(happened, seconds), "it did not happen"

    def count(self, route: str) -> int:
        return sum(asked == route for asked, _, _ in self.asked)

    def answer(self, route: str, body: dict[str, Any], key: str) -> tuple[int, dict[str, Any]]:
        with self.changed:
            self.asked.append((route, body, key))
            if key and (known := self._answers.get((route, key))) is not None:
                return known
            answer = getattr(self, f"_{route}")(body)
            if key:
                self._answers[route, key] = answer
            self.changed.notify_all()
            return answer

    # --- routes ---

    def _about(self, _: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        return 200, {"install": "ab" * 16, "version": "test"}

    def _claim(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        due = [job for job in self.jobs if job.state == "pending" and job.queue in body["queues"]]
        if not due:
            return 200, {"job": None, "more": False}
        job = due[0]
        job.state, job.lease, job.claims = "running", body["lease"], job.claims + 1
        shown = {
            "id": job.id,
            "kind": job.kind,
            "queue": job.queue,
            "project": None,
            "attempt": job.claims,
            "cursor": None,
            "run_seconds": job.run_seconds,
            "is_inline": job.is_inline,
        }
        digest = hashlib.sha256(json.dumps(job.input).encode()).hexdigest()
        return 200, {
            "job": shown,
            "input": job.input,
            "input_digest": digest,
            "lease_seconds": 300,
            "more": len(due) > 1,
        }

    def _renew(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if (job := self._held(body)) is None:
            return _STALE
        job.renewals += 1
        return 200, {"lease_seconds": 300, "cancel": self.cancel}

    def _finish(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        return self._end("finish", body, "completed")

    def _fail(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        return self._end("fail", body, "failed")

    def _release(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        return self._end("release", body, "released")

    def _end(self, route: str, body: dict[str, Any], state: str) -> tuple[int, dict[str, Any]]:
        if (job := self._held(body)) is None:
            return _STALE
        job.state, job.lease = state, ""
        job.endings.append(
            (route, {name: value for name, value in body.items() if name not in ("lease", "job")})
        )
        return 200, {"state": state, "more": any(other.state == "pending" for other in self.jobs)}

    def _held(self, body: dict[str, Any]) -> SmallJob | None:
        return next(
            (job for job in self.jobs if job.id == body["job"] and job.lease == body["lease"] != ""), None
        )


_STALE = (409, {"code": "stale_lease", "error": "the job is no longer that of this claim"})


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    gate: SmallGate
    body: dict[str, Any]

    def setup(self) -> None:
        super().setup()
        self.gate.connections += 1
        self.timeout = 10

    def do_GET(self) -> None:
        self._serve({})

    def do_POST(self) -> None:
        self._serve(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def _serve(self, body: dict[str, Any]) -> None:
        self.gate.tokens.append(self.headers.get("Authorization", ""))
        self.body = body
        faults = self.gate.faults.get(self.route)
        if faults and faults.pop(0)(self):
            with self.gate.changed:
                self.gate.changed.notify_all()
            return
        self.send(*self.proper())

    @property
    def route(self) -> str:
        return self.path.rpartition("/")[2]

    def proper(self) -> tuple[int, dict[str, Any]]:
        """What the gate would answer; it takes effect by that."""
        return self.gate.answer(self.route, self.body, self.headers.get("Idempotency-Key", ""))

    def send(self, status: int, value: Any, **headers: str) -> None:
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, text in headers.items():
            self.send_header(name.replace("_", "-"), text)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None: ...


# --- faults ---


def says(status: int, code: str = "told", **headers: str) -> Fault:
    """An answer of the test's; the request takes no effect."""

    def fault(handler: Handler) -> bool:
        handler.send(status, {"code": code, "error": "as told"}, **headers)
        return True

    return fault


def cut_before(handler: Handler) -> bool:
    """The connection breaks before the request takes effect."""
    handler.connection.shutdown(socket.SHUT_RDWR)
    handler.close_connection = True
    return True


def cut_after(handler: Handler) -> bool:
    """It takes effect, and the connection breaks before the answer."""
    handler.proper()
    return cut_before(handler)


def cut_in_the_answer(handler: Handler) -> bool:
    """It takes effect, and half of the answer arrives."""
    _, value = handler.proper()
    data = json.dumps(value).encode()
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(data)))
    handler.end_headers()
    handler.wfile.write(data[: len(data) // 2])
    return cut_before(handler)


def packed(handler: Handler) -> bool:
    status, value = handler.proper()
    handler.send(status, gzip.compress(json.dumps(value).encode()), Content_Encoding="gzip")
    return True


def raw(data: bytes, status: int = 200, **headers: str) -> Fault:
    def fault(handler: Handler) -> bool:
        handler.send(status, data, **headers)
        return True

    return fault


def closing(handler: Handler) -> bool:
    """A proper answer, after which the server closes without a word, as it does with idle connections."""
    handler.send(*handler.proper())
    handler.close_connection = True
    return True


def when(go: threading.Event) -> Fault:
    """A proper answer, and not before the test says so."""

    def fault(handler: Handler) -> bool:
        assert go.wait(60)
        return False

    return fault


@contextmanager
def small_gate() -> Iterator[SmallGate]:
    gate = SmallGate()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"gate": gate}))
    server.daemon_threads = True
    gate.url = f"http://127.0.0.1:{server.server_port}"
    serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    serving.start()
    yield gate
    server.shutdown()
    server.server_close()
    serving.join()

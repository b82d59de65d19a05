"""A load generator for one loopback port: keep-alive connections, one request under way on each, one thread.

Runs as a process of its own (`python -m scripts.bench_parts.load`, a plan as JSON on stdin, its report on stdout), so
that it shares no interpreter with who asks for it. It costs the machine the same for both sides of a ratio.
"""

from __future__ import annotations

import json
import re
import selectors
import socket
import subprocess
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass, field

from scripts.bench_parts.machine import ROOT
from scripts.bench_parts.texts import Events

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_ANSWER_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Stops after `requests` or `seconds`, whichever is set; answers under way are awaited."""

    port: int
    token: str
    run: str
    size_bytes: int
    connections: int
    requests: int = 0
    seconds: float = 0.0
    #: 1: `POST /hook`; more: `POST /hook/batch` of so many events.
    items: int = 1


@dataclass(kw_only=True)
class Report:
    seconds: float = 0.0
    #: Events that were answered 202.
    accepted: int = 0
    #: Events of requests with any other answer, or none.
    others: list[int] = field(default_factory=list)
    statuses: dict[str, int] = field(default_factory=dict)
    #: Of each request, milliseconds.
    latencies: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Accepted events per second."""
        return self.accepted / self.seconds if self.seconds else 0.0


def run(plan: Plan) -> Report:
    """Execute a plan in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "scripts.bench_parts.load"],
        input=json.dumps(asdict(plan)).encode(),
        stdout=subprocess.PIPE,
        cwd=ROOT,
        check=True,
    )
    return Report(**json.loads(done.stdout))


class Client:
    """One connection: what it sent and what came back of it."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.first = 0
        self.sent_at = 0.0
        self.answer = b""

    def take(self) -> int | None:
        """Read what there is; the status once the answer is whole, 0 when the connection was closed."""
        data = self.socket.recv(262_144)
        if not data:
            return 0
        self.answer += data
        head, found, body = self.answer.partition(b"\r\n\r\n")
        if not found:
            return None
        length = _LENGTH.search(head)
        if length is None or len(body) < int(length[1]):
            return None
        status = int(self.answer[9:12])
        self.answer = b""
        return status


class _Load:
    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._events = Events(plan.run, plan.size_bytes)
        self._next = 0
        self._report = Report()
        self._statuses: Counter[str] = Counter()
        self._bodies = _Bodies(self._events)

    def run(self) -> Report:
        plan = self._plan
        clients = [Client(plan.port) for _ in range(plan.connections)]
        self._bodies.warm()
        began = time.monotonic()
        until = began + plan.seconds if plan.seconds else float("inf")
        with selectors.EpollSelector() as selector:
            for client in clients:
                selector.register(client.socket, selectors.EVENT_READ, client)
            busy = {client for client in clients if self._send(client, until)}
            while busy:
                ready = selector.select(_ANSWER_SECONDS)
                if not ready:
                    break
                for key, _ in ready:
                    client: Client = key.data
                    status = client.take()
                    if status is None:
                        continue
                    self._answered(client, status)
                    if status == 0:
                        selector.unregister(client.socket)
                    if status == 0 or not self._send(client, until):
                        busy.discard(client)
        for client in busy:
            self._answered(client, 0)
        self._report.seconds = time.monotonic() - began
        self._report.statuses = dict(self._statuses)
        return self._report

    def _send(self, client: Client, until: float) -> bool:
        plan = self._plan
        now = time.monotonic()
        if now >= until or (plan.requests and self._next >= plan.requests * plan.items):
            return False
        first, self._next = self._next, self._next + plan.items
        client.first, client.sent_at = first, now
        client.socket.sendall(self._request(first))
        return True

    def _request(self, first: int) -> bytes:
        plan = self._plan
        if plan.items == 1:
            path, body = self._events.query(first), self._bodies.one(first)
        else:
            path, body = "/hook/batch", self._bodies.batch(range(first, first + plan.items))
        head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{plan.port}\r\nAuthorization: Bearer {plan.token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body

    def _answered(self, client: Client, status: int) -> None:
        self._statuses[str(status or "none")] += 1
        self._report.latencies.append(round((time.monotonic() - client.sent_at) * 1000, 3))
        if status == 202:
            self._report.accepted += self._plan.items
        else:
            self._report.others += range(client.first, client.first + self._plan.items)


class _Bodies:
    """JSON of events from templates: the load generator must cost little beside what it measures."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._templates: dict[int, bytes] = {}
        self._period = 64 * 97  # after so many events everything but the marker comes again

    def warm(self) -> None:
        for number in range(self._period if self._events.size_bytes else 0):
            self.one(number)

    def one(self, number: int) -> bytes:
        place = number % self._period
        template = self._templates.get(place)
        if template is None:
            template = json.dumps(self._events.payload(place)).encode()
            self._templates[place] = template
        return template.replace(self._events.marker(place).encode(), self._events.marker(number).encode())

    def batch(self, numbers: range) -> bytes:
        items = (
            b'{"url":"%s","body":%s}' % (self._events.query(number).encode(), self.one(number))
            for number in numbers
        )
        return b"[" + b",".join(items) + b"]"


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asdict(_Load(Plan(**json.load(sys.stdin))).run())))

"""Clients that ask one tool after another: keep-alive connections, one question under way on each, one thread.

Runs as a process of its own (`python -m scripts.bench_parts.asking`, a plan as JSON on stdin, its report on stdout).
"""

from __future__ import annotations

import json
import selectors
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from itertools import count

from scripts.bench_parts.load import Client
from scripts.bench_parts.machine import ROOT

_ANSWER_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Asks `tool` with each of `questions` (arguments) in turn, round and round, until `seconds` are over."""

    port: int
    token: str
    tool: str
    questions: list[dict[str, object]]
    clients: int
    seconds: float


@dataclass(kw_only=True)
class Report:
    seconds: float = 0.0
    answers: int = 0
    #: Answers that were not 200.
    others: int = 0
    #: Of each answer, milliseconds.
    latencies: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Answers per second."""
        return self.answers / self.seconds if self.seconds else 0.0


def run(plan: Plan) -> Report:
    """Execute a plan in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "scripts.bench_parts.asking"],
        input=json.dumps(asdict(plan)).encode(),
        stdout=subprocess.PIPE,
        cwd=ROOT,
        check=True,
    )
    return Report(**json.loads(done.stdout))


def _ask(plan: Plan) -> Report:
    report = Report()
    requests = [_request(plan, question) for question in plan.questions]
    numbers = count()
    clients = [Client(plan.port) for _ in range(plan.clients)]
    began = time.monotonic()
    with selectors.EpollSelector() as selector:
        for client in clients:
            selector.register(client.socket, selectors.EVENT_READ, client)
            _send(client, requests[next(numbers) % len(requests)])
        busy = len(clients)
        while busy and (ready := selector.select(_ANSWER_SECONDS)):
            for key, _ in ready:
                client: Client = key.data
                status = client.take()
                if status is None:
                    continue
                report.latencies.append(round((time.monotonic() - client.sent_at) * 1000, 3))
                report.answers += status == 200
                report.others += status != 200
                if status and time.monotonic() - began < plan.seconds:
                    _send(client, requests[next(numbers) % len(requests)])
                else:
                    selector.unregister(client.socket)
                    busy -= 1
    report.seconds = time.monotonic() - began
    return report


def _send(client: Client, request: bytes) -> None:
    client.sent_at = time.monotonic()
    client.socket.sendall(request)


def _request(plan: Plan, question: dict[str, object]) -> bytes:
    body = json.dumps(question).encode()
    head = (
        f"POST /api/v1/tools/{plan.tool} HTTP/1.1\r\nHost: 127.0.0.1:{plan.port}\r\nAuthorization: Bearer {plan.token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asdict(_ask(Plan(**json.load(sys.stdin))))))

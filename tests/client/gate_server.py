"""A small real HTTP server in the place of memoryd: it records what it is sent and answers as the test tells it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

#: (items of a batch) → HTTP status, answer (or raw bytes), extra headers.
Behaviour = Callable[[list[dict[str, Any]]], tuple[int, Any, dict[str, str]]]


def commits(items: list[dict[str, Any]]) -> tuple[int, Any, dict[str, str]]:
    """Everything is committed."""
    results = [{"id": key_of(item), "status": "committed"} for item in items]
    return 200, {"accepted": len(items), "results": results}, {}


def says(*statuses: str) -> Behaviour:
    """One status per item, in order; items beyond the list get no result."""

    def behave(items: list[dict[str, Any]]) -> tuple[int, Any, dict[str, str]]:
        pairs = zip(items, statuses, strict=False)
        results = [{"id": key_of(item), "status": status, "reason": "told so"} for item, status in pairs]
        return 200, {"accepted": 0, "results": results}, {}

    return behave


def answers(status: int, **headers: str) -> Behaviour:
    return lambda _items: (status, {"error": "as told"}, {k.replace("_", "-"): v for k, v in headers.items()})


def in_turn(*behaviours: Behaviour) -> Behaviour:
    """The first for the first request, and so on; the last one for all that follow."""
    left = list(behaviours)
    return lambda items: (left.pop(0) if len(left) > 1 else left[0])(items)


def key_of(item: dict[str, Any]) -> str:
    return query_of(item["url"])["ingest_key"]


def query_of(url: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}


@dataclass
class Gate:
    url: str = ""
    behaviour: Behaviour = commits
    handoff: str = ""
    batches: list[list[dict[str, Any]]] = field(default_factory=list)
    handoffs_asked: list[dict[str, str]] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    arrived: threading.Condition = field(default_factory=threading.Condition)

    @property
    def items(self) -> list[dict[str, Any]]:
        return [item for batch in self.batches for item in batch]

    def wait_for(self, items: int, *, seconds: float = 20) -> list[dict[str, Any]]:
        """The items, as soon as there are so many different ones."""
        with self.arrived:
            done = self.arrived.wait_for(lambda: len({key_of(i) for i in self.items}) >= items, seconds)
        assert done, f"only {len(self.items)} of {items} items arrived"
        return self.items


@contextmanager
def running_gate() -> Iterator[Gate]:
    gate = Gate()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            items = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with gate.arrived:
                gate.batches.append(items)
                gate.tokens.append(self.headers.get("Authorization", ""))
                gate.paths.append(self.path)
                gate.headers.append(dict(self.headers))
                status, answer, headers = gate.behaviour(items)
                gate.arrived.notify_all()
            data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self._answer(status, data, headers)

        def do_GET(self) -> None:
            gate.handoffs_asked.append(query_of(self.path))
            self._answer(200, gate.handoff.encode(), {})

        def _answer(self, status: int, data: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in {"Content-Length": str(len(data)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: Any) -> None:
            """A client that gave up waiting is a part of some tests."""

    with Server(("127.0.0.1", 0), Handler) as server:
        gate.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield gate
        finally:
            server.shutdown()
            thread.join()

"""A program that works on a durable session over HTTP, wherever the gate is."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from tests.domain.transcripts import message

HERE = {"host": "box", "device": "7", "inode": "42", "path": "/srv/repo"}
#: Method, path, body and headers: status and answer, as text.
Ask = Callable[[str, str, Any, dict[str, str]], tuple[int, str]]


@dataclass
class HttpAgent:
    ask: Ask
    id: str = ""
    lease: dict[str, str] = field(default_factory=dict, repr=False)
    last: int = 0

    @property
    def path(self) -> str:
        return f"/api/v1/durable-sessions/{self.id}"

    def start(self) -> HttpAgent:
        self.id = self.must("POST", "/api/v1/durable-sessions", {"directory": HERE}, status=201)["id"]
        return self

    def claim(self) -> Any:
        claim = self.must("POST", f"{self.path}/claim", {"directory": HERE})
        self.lease = {"Memoryd-Lease": claim["lease"]}
        return claim

    def say(self, prompt: str, answer: str) -> None:
        events = [
            {"kind": "user_message", "payload": message(prompt)},
            {"kind": "assistant_message", "payload": message(answer)},
        ]
        body = {"directory": HERE, "expected_last_sequence": self.last, "events": events}
        self.last = self.must("POST", f"{self.path}/turns", body, **self.lease)["last_sequence"]

    def release(self) -> None:
        self.must("POST", f"{self.path}/release", {}, **self.lease)

    def close(self) -> Any:
        return self.must("POST", f"{self.path}/close", {"directory": HERE}, **self.lease)

    def replay(self) -> list[Any]:
        """The lines of a replay, which is then said to be read."""
        place = urlencode({name: HERE[name] for name in ("host", "device", "inode")})
        status, text = self.ask("GET", f"{self.path}/replay?{place}", None, self.lease)
        assert status == 200, text
        lines = [json.loads(line) for line in text.splitlines()]
        end = lines[-1]["end"]
        self.must("POST", f"{self.path}/replayed", {"directory": HERE, **end}, **self.lease)
        self.last = end["last_sequence"]
        return lines

    def compact(self, key: str = "", **body: Any) -> tuple[int, Any]:
        return self.json(
            "POST", f"{self.path}/compactions", body, **({"Idempotency-Key": key} if key else {})
        )

    def compactions(self) -> Any:
        return self.must("GET", f"{self.path}/compactions")

    def json(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        status, text = self.ask(method, path, body, headers)
        return status, json.loads(text)

    def must(self, method: str, path: str, body: Any = None, *, status: int = 200, **headers: str) -> Any:
        got, answer = self.json(method, path, body, **headers)
        assert got == status, answer
        return answer

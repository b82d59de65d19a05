"""A client of durable sessions that knows nothing but the routes."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.web.house import House

HERE = {"host": "laptop", "device": "66306", "inode": "1234567890123", "path": "/srv/repo"}
ELSEWHERE = HERE | {"inode": "5"}


def message(text: str, role: str = "user") -> dict[str, Any]:
    return {
        "record": "durable_message",
        "version": 1,
        "role": role,
        "content": [{"type": "text", "data": text}],
        "tool_calls": [],
        "tool_call_id": None,
        "reasoning": None,
    }


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels - 1):
        value = [value]
    return value


def said(text: str) -> dict[str, Any]:
    """An event: what a person said."""
    return {"kind": "user_message", "payload": message(text)}


class Client:
    """One session over HTTP; keeps its lease and how far it has read."""

    def __init__(
        self, house: House, session: str = "", directory: dict[str, str] = HERE, **start: Any
    ) -> None:
        self.house = house
        self.directory = directory
        self.lease = ""
        self.last_sequence = 0
        self.id = session or self.started(**start)["id"]

    @property
    def root(self) -> str:
        return f"/api/v1/durable-sessions/{self.id}"

    def started(self, **more: Any) -> dict[str, Any]:
        answer = self.house.post("/api/v1/durable-sessions", {"directory": self.directory, **more})
        assert answer.status_code == 201, answer.get_json()
        return answer.get_json()

    def post(self, route: str, body: dict[str, Any] | None = None, **headers: str) -> Any:
        told = {"Memoryd-Lease": self.lease} if self.lease else {}
        return self.house.post(f"{self.root}/{route}", body or {}, **(told | headers))

    def claim(self, directory: dict[str, str] | None = None, *, key: str = "") -> Any:
        headers = {"Idempotency-Key": key} if key else {}
        answer = self.post("claim", {"directory": directory or self.directory}, **headers)
        if answer.status_code == 200:
            told = answer.get_json()
            self.lease, self.last_sequence = told["lease"], told["last_sequence"]
        return answer

    def renew(self) -> Any:
        return self.post("renew", {"directory": self.directory})

    def append(self, *events: dict[str, Any], **headers: str) -> Any:
        body = {
            "directory": self.directory,
            "expected_last_sequence": self.last_sequence,
            "events": list(events),
        }
        answer = self.post("turns", body, **headers)
        if answer.status_code == 200:
            self.last_sequence = answer.get_json()["last_sequence"]
        return answer

    def replay(self, directory: dict[str, str] | None = None) -> Any:
        place = directory or self.directory
        query = "&".join(f"{name}={place[name]}" for name in ("host", "device", "inode"))
        return self.house.get(f"{self.root}/replay?{query}", **{"Memoryd-Lease": self.lease})

    def resume(self) -> list[dict[str, Any]]:
        """Replay and say so; the lines."""
        lines = lines_of(self.replay())
        end = lines[-1]["end"]
        answer = self.post("replayed", {"directory": self.directory, **end})
        assert answer.status_code == 200, answer.get_json()
        self.last_sequence = end["last_sequence"]
        return lines

    def title(self, text: str) -> Any:
        return self.post("title", {"title": text, "directory": self.directory})


def at_once(*acts: Callable[[], Any]) -> list[Any]:
    """What each answers, all begun in the same moment by threads of their own."""
    start = threading.Barrier(len(acts))

    def act(do: Callable[[], Any]) -> Any:
        start.wait(60)
        return do()

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(act, acts))


def lines_of(answer: Any) -> list[dict[str, Any]]:
    assert answer.status_code == 200, answer.get_json()
    return [json.loads(line) for line in answer.get_data().splitlines()]


def texts_of(lines: list[dict[str, Any]]) -> list[str]:
    return [line["event"]["payload"]["content"][0]["data"] for line in lines if "event" in line]

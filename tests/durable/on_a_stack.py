"""A whole memoryd in place of a gate in this process: what is not answered is sent again with its key until it is."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from typing import Any

from tests.e2e.running import Running

#: Nobody knows, or not now: the same again later.
_AGAIN = (0, 202, 429, 502, 503, 504)


@dataclass(frozen=True)
class Answer:
    status_code: int
    body: Any

    def get_json(self) -> Any:
        return self.body

    def get_data(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else str(self.body).encode()


@dataclass
class StackHouse:
    """As much of a `House` as a client of durable sessions asks."""

    memoryd: Running
    seconds: float = 90.0

    def post(self, path: str, body: Any, **headers: str) -> Answer:
        return self.insist("POST", path, body, headers)

    def get(self, path: str, **headers: str) -> Answer:
        return self.insist("GET", path, None, headers)

    def delete(self, path: str, **headers: str) -> Answer:
        return self.insist("DELETE", path, None, headers)

    def insist(self, method: str, path: str, body: Any, headers: dict[str, str]) -> Answer:
        told = {"Idempotency-Key": str(uuid.uuid4())} | headers
        end = time.monotonic() + self.seconds
        while True:
            try:
                status, answer = self.memoryd.request(method, path, body, headers=told)
            except OSError:
                status, answer = 0, None
            if status not in _AGAIN:
                return Answer(status, answer)
            assert time.monotonic() < end, (method, path, status, answer)
            time.sleep(0.1)

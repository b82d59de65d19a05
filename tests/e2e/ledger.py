"""A load of events and page writes, and the book of what was answered to each."""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass, field
from enum import StrEnum

from tests.e2e.running import Running


class Answered(StrEnum):
    ACCEPTED = "accepted"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass
class Ledger:
    """What was sent and what was said: marker → answer. Markers are unique words inside the text."""

    events: dict[str, Answered] = field(default_factory=dict)
    pages: dict[str, Answered] = field(default_factory=dict)
    statuses: dict[int, int] = field(default_factory=dict)
    in_flight: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def accepted(self, kind: dict[str, Answered]) -> set[str]:
        return {marker for marker, answer in kind.items() if answer is Answered.ACCEPTED}


class Load:
    """Sends `events_per_second` prompts (and a page write now and then) from a few threads until stopped."""

    def __init__(
        self,
        memoryd: Running,
        *,
        seed: int,
        events_per_second: float = 50,
        pages_per_second: float = 4,
        threads: int = 4,
    ) -> None:
        self.ledger = Ledger()
        self._memoryd = memoryd
        self._seed = seed
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._send_events, args=(n, events_per_second / threads), daemon=True)
            for n in range(threads)
        ]
        if pages_per_second:
            self._threads.append(
                threading.Thread(target=self._write_pages, args=(pages_per_second,), daemon=True)
            )

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(30)

    def _send_events(self, number: int, per_second: float) -> None:
        chance = random.Random(f"{self._seed}-{number}")
        session = f"load-{self._seed}-{number}"
        count = 0
        while not self._stop.wait(chance.expovariate(per_second)):
            marker = f"evt{self._seed}x{number}x{count}"
            count += 1
            text = f"{marker} " + "word " * chance.randint(20, 400)
            self._record(
                self.ledger.events,
                marker,
                "/hook?agent=claude-code&event=UserPromptSubmit",
                {
                    "session_id": session,
                    "cwd": "/srv/load",
                    "hook_event_name": "UserPromptSubmit",
                    "prompt": text,
                },
            )

    def _write_pages(self, per_second: float) -> None:
        chance = random.Random(f"{self._seed}-pages")
        count = 0
        while not self._stop.wait(chance.expovariate(per_second)):
            marker = f"page{self._seed}x{count}"
            count += 1
            arguments = {
                "path": f"notes/page-{chance.randint(0, 12)}.md",
                "body": f"# {marker}\n\n" + "line\n" * chance.randint(1, 200),
                "project": "load",
            }
            self._record(self.ledger.pages, marker, "/api/v1/tools/memory_write_page", arguments)

    def _record(self, book: dict[str, Answered], marker: str, path: str, body: object) -> None:
        with self.ledger.lock:
            self.ledger.in_flight += 1
        status, pending = 0, False
        try:
            status, answer = self._memoryd.request("POST", path, body, seconds=8)
            pending = isinstance(answer, dict) and answer.get("status") == "pending"
        except OSError:
            pass
        with self.ledger.lock:
            self.ledger.in_flight -= 1
            book[marker] = Answered.UNKNOWN if pending else _meaning(status)
            self.ledger.statuses[status] = self.ledger.statuses.get(status, 0) + 1


def _meaning(status: int) -> Answered:
    if status in (200, 202):
        return Answered.ACCEPTED
    return Answered.REFUSED if status in (429, 503) else Answered.UNKNOWN


def settle(seconds: float) -> None:
    """Let the load run: the faults of these tests are spread over time, that is their point."""
    time.sleep(seconds)

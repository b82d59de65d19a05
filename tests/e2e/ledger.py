"""A load of events and page writes, and the book of what was answered to each."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tests.e2e.running import Running


class Answered(StrEnum):
    ACCEPTED = "accepted"
    REFUSED = "refused"
    UNKNOWN = "unknown"


#: Every answer that the product may give under faults; another one is a broken promise of its own.
_MEANING = {
    200: Answered.ACCEPTED,
    202: Answered.ACCEPTED,
    429: Answered.REFUSED,
    503: Answered.REFUSED,
    504: Answered.UNKNOWN,
    0: Answered.UNKNOWN,
}


@dataclass
class Ledger:
    """What was sent and what was said: marker → answer. Markers are unique words inside the text."""

    events: dict[str, Answered] = field(default_factory=dict)
    pages: dict[str, Answered] = field(default_factory=dict)
    statuses: dict[int, int] = field(default_factory=dict)
    #: Sessions whose end was accepted.
    sessions: set[str] = field(default_factory=set)
    surprises: list[str] = field(default_factory=list)
    #: Requests without an answer, and how many of them write pages.
    in_flight: int = 0
    pages_in_flight: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    #: No 202 is heard: the machine that gives it has lost its power.
    is_deaf: bool = False

    def accepted(self, kind: dict[str, Answered]) -> set[str]:
        return {marker for marker, answer in kind.items() if answer is Answered.ACCEPTED}

    def unsettled(self, kind: dict[str, Answered]) -> set[str]:
        return {marker for marker, answer in kind.items() if answer is not Answered.ACCEPTED}

    @contextmanager
    def deaf(self) -> Generator[None]:
        """While it lasts no acceptance is heard: what became of the request is unknown. What must never be answered is seen."""
        with self.lock:
            self.is_deaf = True
        try:
            yield
        finally:
            with self.lock:
                self.is_deaf = False

    def ask(self, book: dict[str, Answered], marker: str, send: Callable[[], tuple[int, Any]]) -> Answered:
        """Send something and enter what was answered. Sent before and accepted once, it stays accepted."""
        is_page = int(book is self.pages)
        with self.lock:
            self.in_flight += 1
            self.pages_in_flight += is_page
        status, answer = 0, None
        try:
            status, answer = send()
        except OSError:
            pass
        meaning = _MEANING.get(status, Answered.UNKNOWN)
        if isinstance(answer, dict) and "command_id" in answer and answer.get("status") == "pending":
            meaning = Answered.UNKNOWN
        with self.lock:
            if self.is_deaf and meaning is Answered.ACCEPTED:
                meaning = Answered.UNKNOWN
            self.in_flight -= 1
            self.pages_in_flight -= is_page
            self.statuses[status] = self.statuses.get(status, 0) + 1
            if status not in _MEANING:
                self.surprises.append(f"{marker} was answered {status}: {str(answer)[:200]}")
            before = book.get(marker)
            # An earlier try whose outcome is unknown may still take effect after a later one was refused.
            if before is None or meaning is Answered.ACCEPTED or before is Answered.REFUSED:
                book[marker] = meaning
        return meaning


class Load:
    """Sends `events_per_second` prompts (and page writes) from a few threads until its end.

    Half of the senders are patient, as the hook's drain is: they send an event again under its key until it is
    accepted, and now and then once more after that. The others never send anything twice.
    """

    def __init__(
        self,
        memoryd: Running,
        *,
        seed: int,
        events_per_second: float = 50,
        pages_per_second: float = 4,
        threads: int = 6,
        ledger: Ledger | None = None,
        patient: bool | None = None,
    ) -> None:
        """`patient`: all senders are, or none; by default every second one."""
        self.ledger = ledger or Ledger()
        self._memoryd = memoryd
        self._token = memoryd.token
        self._name = f"{seed}"
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(
                target=self._send_events,
                args=(n, events_per_second / threads, n % 2 == 0 if patient is None else patient),
            )
            for n in range(threads)
        ]
        if pages_per_second:
            self._threads.append(threading.Thread(target=self._write_pages, args=(pages_per_second,)))
        if pages_per_second and patient is not False:
            self._threads.append(threading.Thread(target=self._send_sessions))

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.daemon = True
            thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive(), "a sender does not come back"

    def _ticks(self, chance: random.Random, per_second: float) -> Any:
        """One number per event that is due; arrivals do not wait for the answers before them."""
        due, count = time.monotonic(), 0
        while not self._stop.wait(max(0.0, due - time.monotonic())):
            yield count
            count += 1
            # After an outage it goes on at its rate instead of making up for all that was not sent.
            due = max(due, time.monotonic() - 1.0) + chance.expovariate(per_second)

    def _send_events(self, number: int, per_second: float, patient: bool) -> None:
        chance = random.Random(f"{self._name}-{number}")
        for count in self._ticks(chance, per_second):
            marker = f"evt{self._name}x{number}x{count}"
            text = f"{marker} " + "word " * chance.randint(20, 400)
            body = {"session_id": f"load-{self._name}-{number}", "cwd": "/srv/load", "prompt": text}
            if patient:
                self._send_patiently(self.ledger.events, marker, "UserPromptSubmit", body, chance)
            else:
                self._send_event(self.ledger.events, marker, "UserPromptSubmit", body)

    def _send_sessions(self) -> None:
        """Whole sessions, which leave a page and a handoff each."""
        chance = random.Random(f"{self._name}-sessions")
        ends: dict[str, Answered] = {}
        for count in self._ticks(chance, 1.0):
            key = f"whole-{self._name}-{count}"
            body = {"session_id": key, "cwd": "/srv/load"}
            said = {"prompt": f"evt{self._name}xwholex{count} is what this session is about"}
            self._send_patiently(ends, f"{key}-0", "SessionStart", {**body, "source": "startup"}, chance)
            marker = f"evt{self._name}xwholex{count}"
            self._send_patiently(self.ledger.events, marker, "UserPromptSubmit", {**body, **said}, chance)
            self._send_patiently(ends, f"{key}-1", "SessionEnd", {**body, "reason": "other"}, chance)
            if {self.ledger.events[marker], ends[f"{key}-1"]} == {Answered.ACCEPTED}:
                self.ledger.sessions.add(key)

    def _send_patiently(
        self, book: dict[str, Answered], marker: str, event: str, body: dict[str, Any], chance: random.Random
    ) -> None:
        """Again and again under one key until it is accepted; now and then once more after that."""
        deadline = time.monotonic() + 50
        while True:
            self._send_event(book, marker, event, body)
            if book[marker] is Answered.ACCEPTED or time.monotonic() > deadline:
                break
            time.sleep(chance.uniform(0.02, 0.3))
        if chance.random() < 0.1:
            self._send_event(book, marker, event, body)

    @staticmethod
    def _lines(chance: random.Random) -> int:
        """Of a page; some are so large that they travel beside the stream."""
        return 52_412 if chance.random() < 0.1 else chance.randint(1, 200)

    def _send_event(self, book: dict[str, Answered], marker: str, event: str, body: dict[str, Any]) -> None:
        path = f"/hook?agent=claude-code&event={event}&ingest_key={marker}"
        self.ledger.ask(
            book, marker, lambda: self._memoryd.request("POST", path, body, seconds=8, token=self._token)
        )

    def _write_pages(self, per_second: float) -> None:
        chance = random.Random(f"{self._name}-pages")
        for count in self._ticks(chance, per_second):
            marker = f"page{self._name}x{count}"
            arguments = {
                "path": f"notes/page-{chance.randint(0, 12)}.md",
                "body": f"# {marker}\n\n" + "line\n" * self._lines(chance),
                "project": "load",
            }
            self.ledger.ask(
                self.ledger.pages,
                marker,
                lambda given=arguments: self._memoryd.request(
                    "POST", "/api/v1/tools/memory_write_page", given, seconds=8, token=self._token
                ),
            )


def settle(seconds: float) -> None:
    """Let the load run: the faults of these tests are spread over time, that is their point."""
    time.sleep(seconds)

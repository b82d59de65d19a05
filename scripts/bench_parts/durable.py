"""Durable sessions: what a turn of ten events costs, early and late in a session, and how long a replay takes and what it holds."""

from __future__ import annotations

import http.client
import json
import random
import re
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memory_core.domain.transcript_digest import Verifier
from memory_core.ids import id_bytes
from memory_core.store import durable_sessions, session_events
from memory_core.store.database import Database
from scripts.bench_parts.figures import Result, at_most, quantile
from scripts.bench_parts.parts import Bench, parts
from scripts.bench_parts.stack import Stack
from scripts.bench_parts.texts import Words

#: Of a turn's ten events late in a session, against the same early in it.
APPEND_GROWTH = at_most(1.5)
#: Time of a replay per event, of the long session against the short one.
REPLAY_GROWTH = at_most(1.5)
#: What the web process holds more at its peak, while it sends a replay of tens of megabytes.
REPLAY_PEAK_MB = at_most(48)
TURN_EVENTS = 10
TEXT_BYTES = 300
_FILL_EVENTS = 2_000
_PLACE = {"host": "bench", "device": "1", "inode": "2", "path": "/srv/bench"}


@parts.add("durable")
def durable(bench: Bench) -> Result:
    """One session that grows; measured when it is empty, at each size, and replayed there."""
    result = Result(part="durable")
    with bench.stack() as stack:
        session = _Session(stack)
        turns = bench.sizes.durable_turns
        early = session.append_times(turns)
        result.add("a turn of ten events into an empty session p50", statistics.median(early), "ms")
        result.add("a turn of ten events into an empty session p99", quantile(early, 0.99), "ms")
        per_event: list[float] = []
        for size in bench.sizes.durable_events:
            session.fill(size - TURN_EVENTS * (turns + 1), bench.say)
            late = session.append_times(turns)
            growth = statistics.median(late) / statistics.median(early)
            result.add(f"a turn of ten events behind {size:,} p50", statistics.median(late), "ms")
            result.add(f"the same against an empty session, at {size:,}", growth, "×", APPEND_GROWTH)
            bench.say(f"durable: replay of {session.count:,} events")
            seconds, held = session.replayed()
            per_event.append(seconds / session.count)
            result.add(f"replay of {session.count:,} events", seconds, "s")
            result.add(
                f"replay of {session.count:,} events, held more at the peak", held, "MB", REPLAY_PEAK_MB
            )
        result.add(
            "time of a replay per event, long session against short",
            per_event[-1] / per_event[0],
            "×",
            REPLAY_GROWTH,
        )
        result.complaints += session.complaints + verify(stack.database, session)
        result.verified.append(
            f"{session.count:,} events: each there once, in its place, as it was sent, digests included"
        )
    return result


class _Session:
    """A session, and the book of what was written into it."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._connection = http.client.HTTPConnection("127.0.0.1", stack.port, timeout=60)
        self._words, self._chance = Words(), random.Random(5)
        self._lease = ""
        self.complaints: list[str] = []
        self.texts: list[str] = []
        self.id = self._send("POST", "", {"directory": _PLACE}, 201)["id"]
        self._lease = self._send("POST", "/claim", {"directory": _PLACE})["lease"]

    @property
    def count(self) -> int:
        return len(self.texts)

    def append_times(self, turns: int) -> list[float]:
        """Milliseconds of each of so many turns."""
        self._append(TURN_EVENTS)
        return [self._append(TURN_EVENTS) for _ in range(turns)]

    def fill(self, count: int, say: Any) -> None:
        """Long turns until there are so many events."""
        while self.count < count:
            say(f"durable: {self.count:,} of {count:,} events")
            self._append(min(_FILL_EVENTS, count - self.count))

    def replayed(self) -> tuple[float, float]:
        """Seconds of a whole replay, and megabytes that the web process held more at its peak than before."""
        pid = self._stack.pid("web")
        (Path("/proc") / str(pid) / "clear_refs").write_text("5")  # the peak begins anew
        before = _megabytes(pid, "VmRSS")
        began = time.monotonic()
        texts = [line["event"]["payload"]["text"] for line in self._lines() if "event" in line]
        seconds = time.monotonic() - began
        if texts != self.texts:
            self.complaints.append(
                f"a replay gave {len(texts)} events that are not the {self.count} written ones"
            )
        return seconds, max(0.01, _megabytes(pid, "VmHWM") - before)

    def _lines(self) -> Iterator[Any]:
        query = "&".join(f"{name}={_PLACE[name]}" for name in ("host", "device", "inode"))
        response = self._request("GET", f"/replay?{query}", None)
        last: Any = None
        for line in response:
            last = json.loads(line)
            yield last
        if last is None or "end" not in last:
            self.complaints.append(f"a replay was cut: {last}")

    def _append(self, count: int) -> float:
        texts = [self._words.text(self._chance, TEXT_BYTES) for _ in range(count)]
        events = [{"kind": "user_message", "payload": {"text": text}} for text in texts]
        body = {"directory": _PLACE, "expected_last_sequence": self.count, "events": events}
        began = time.monotonic()
        answer = self._send("POST", "/turns", body)
        took = (time.monotonic() - began) * 1000
        self.texts += texts
        if answer.get("last_sequence") != self.count:
            self.complaints.append(f"a turn was answered {answer}")
        return took

    def _send(self, method: str, route: str, body: Any, status: int = 200) -> Any:
        response = self._request(method, route, body)
        raw = response.read()
        if response.status != status:
            raise ValueError(f"{method} {route}: {response.status} {raw[:500]!r}")
        return json.loads(raw)

    def _request(self, method: str, route: str, body: Any) -> http.client.HTTPResponse:
        path = "/api/v1/durable-sessions" + (f"/{self.id}" if route else "") + route
        headers = {"Authorization": f"Bearer {self._stack.token}", "Content-Type": "application/json"}
        if self._lease:
            headers["Memoryd-Lease"] = self._lease
        self._connection.request(method, path, None if body is None else json.dumps(body).encode(), headers)
        return self._connection.getresponse()


def verify(path: Path, session: _Session) -> list[str]:
    """What is wrong with the stored events; reads every one of them."""
    database, verifier, seen = Database(path), Verifier(id_bytes(session.id)), 0
    try:
        with database.snapshot(60) as reading:
            state = durable_sessions.one(reading, id_bytes(session.id))
            assert state is not None
            while events := session_events.between(
                reading, state.id, after=seen, through=state.last_sequence, limit=1_000, max_bytes=1 << 30
            ):
                for event in events:
                    verifier.feed(event)
                    if json.loads(event.payload_json) != {"text": session.texts[seen]}:
                        return [f"event {event.sequence} is not what was sent"]
                    seen += 1
            verifier.end(last_sequence=session.count, digest=state.digest)
    except Exception as error:
        return [f"after {seen} events: {error}"]
    finally:
        database.close()
    return []


def _megabytes(pid: int, name: str) -> float:
    status = (Path("/proc") / str(pid) / "status").read_text()
    found = re.search(rf"^{name}:\s+(\d+) kB", status, re.M)
    assert found is not None
    return int(found[1]) / 1024

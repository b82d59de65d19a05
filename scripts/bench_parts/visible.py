"""From 202 to found: events at a steady pace, each looked for with the product's own search until it is there."""

from __future__ import annotations

import os
import queue
import statistics
import threading
import time

from memory_core.clock import SystemClock
from memory_core.recall.search import Question, search
from memory_core.store.database import Database
from scripts.bench_parts.figures import Result, at_most, quantile
from scripts.bench_parts.parts import Bench, parts
from scripts.bench_parts.stack import Stack
from scripts.bench_parts.talk import Talk
from scripts.bench_parts.texts import Events
from scripts.bench_parts.verify import Sent

EVENTS_PER_SECOND = 50
EVENT_BYTES = 1_200
P99 = at_most(50)
_POLL_SECONDS = 0.0005
_PATIENCE_SECONDS = 10.0


class _Finder:
    """Waits for one event after the other, in the order in which they were accepted."""

    def __init__(self, stack: Stack) -> None:
        self._database = Database(stack.database)
        self._accepted: queue.SimpleQueue[tuple[str, float] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run)
        #: Milliseconds from the answer to the first search that finds the event.
        self.took: list[float] = []
        self.never: list[str] = []

    def __enter__(self) -> _Finder:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._accepted.put(None)
        self._thread.join()

    def expect(self, marker: str, answered_at: float) -> None:
        self._accepted.put((marker, answered_at))

    def _run(self) -> None:
        while (expected := self._accepted.get()) is not None:
            marker, answered_at = expected
            while not self._finds(marker):
                if time.monotonic() - answered_at > _PATIENCE_SECONDS:
                    self.never.append(marker)
                    break
                time.sleep(_POLL_SECONDS)
            self.took.append((time.monotonic() - answered_at) * 1000)
        self._database.close()

    def _finds(self, marker: str) -> bool:
        with self._database.snapshot() as reading:
            question = Question(
                text=marker, projects=None, now=SystemClock().now_us(), principal="owner", limit=1
            )
            found = search(reading, question)
            return bool(found.hits or found.raw_hits)


@parts.add("visible")
def visible(bench: Bench) -> Result:
    """Accepted → searchable at 50 events a second."""
    result = Result(part="visible")
    events = Events(os.urandom(3).hex(), EVENT_BYTES)
    count = max(1, round(bench.sizes.visible_seconds * EVENTS_PER_SECOND))
    with bench.stack() as stack:
        with Talk(stack) as talk, _Finder(stack) as finder:
            began = time.monotonic()
            for number in range(count):
                time.sleep(max(0.0, began + number / EVENTS_PER_SECOND - time.monotonic()))
                talk.hook(events.query(number), events.payload(number))
                finder.expect(events.marker(number), time.monotonic())
            pace = count / (time.monotonic() - began)
        stack.sent.append(Sent(events=events, count=count))
        stack.verify(result)
    result.complaints += [f"{marker} was never found" for marker in finder.never]
    result.verified.append(f"{len(finder.took) - len(finder.never):,} events found by search")
    result.add("pace", pace, "events/s")
    result.add("accepted → searchable p50", statistics.median(finder.took), "ms")
    result.add("accepted → searchable p99", quantile(finder.took, 0.99), "ms", P99)
    return result

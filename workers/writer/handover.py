"""What the thread that looks at the wiki has found, on its way to the writer: a little at a time."""

from __future__ import annotations

import threading
from collections import Counter

from memory_core.commands.outside import Finding
from workers.writer.engine import Stopping

_POLL_SECONDS = 0.1


class Handover:
    """One side gives findings and waits until they are entered; the other takes them between commands."""

    def __init__(self, stopping: threading.Event) -> None:
        self._changed = threading.Condition()
        self._findings: list[Finding] = []
        self._stopping = stopping
        self._counts: Counter[str] = Counter()
        #: The open task has nothing left to do; the writer is to note it.
        self.task_is_done = False

    def give(self, findings: list[Finding]) -> None:
        """Wait until what was given before is entered, then offer these. Raises `Stopping`."""
        self.wait_empty()
        with self._changed:
            self._findings = findings

    def wait_empty(self) -> None:
        """Until all that was given is entered. Raises `Stopping`."""
        with self._changed:
            while self._findings or self.task_is_done:
                if self._stopping.is_set():
                    raise Stopping
                self._changed.wait(_POLL_SECONDS)

    def waiting(self) -> list[Finding]:
        with self._changed:
            return self._findings

    def taken(self, number: int, counts: Counter[str], *, task_is_done: bool = False) -> None:
        """The first `number` findings are dealt with; `counts` is what became of them."""
        with self._changed:
            self._findings = self._findings[number:]
            self._counts += counts
            if task_is_done:
                self.task_is_done = False
            self._changed.notify_all()

    def counts(self) -> Counter[str]:
        """What was entered since this was asked last."""
        with self._changed:
            counts, self._counts = self._counts, Counter()
            return counts

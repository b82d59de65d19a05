"""Delivering the spool: post batches, and delete an entry only when the server says that it is committed.

What was not answered, or was answered with 429, 503 or 504, stays as it is and uses up no try; sending
the same key again is harmless.
"""

from __future__ import annotations

import json
import os
import time

from client import detached, gate, session_state
from client.settings import ClientSettings
from client.spool import Entry, Spool
from memory_core import limits

_DONE = frozenset(("committed", "duplicate", "dropped"))
#: Sending it again would change nothing; a dead one lies in the server's dead letters too.
_ASIDE = frozenset(("invalid", "dead"))
_WAIT_STATUSES = frozenset((429, 502, 503, 504))
_STOP_STATUSES = frozenset((401, 403, 404, 405))
#: Of a single event: the event itself is not acceptable.
_REJECT_STATUSES = frozenset((400, 409, 413, 415, 422))
#: Between looks whether another drain still sends.
_LOOK_SECONDS = 0.02


class Report:
    """What a drain did."""

    __slots__ = ("delivered", "is_elsewhere", "kept", "rejected", "status", "stopped")

    def __init__(self) -> None:
        self.delivered = 0
        self.rejected = 0
        #: Entries that were tried and are still there.
        self.kept: set[str] = set()
        #: Another drain of this URL runs, or one of another URL was sending all the time.
        self.is_elsewhere = False
        #: Why it makes no sense to go on now, and the HTTP status where the server said so.
        self.stopped = ""
        self.status = 0


def drain(spool: Spool, settings: ClientSettings, *, seconds: float, lock: int | None = None) -> Report:
    """Deliver until the spool is empty or `seconds` are over. Takes the URL's lock unless it holds it already.

    A hook that found the lock taken relies on this: after the lock is free, it looks once more.
    """
    report = Report()
    deadline = time.monotonic() + seconds
    while True:
        lock = detached.try_lock(settings) if lock is None else lock
        if lock is None:
            report.is_elsewhere = True
            return report
        try:
            _Drain(spool, settings, report, deadline).run()
        finally:
            os.close(lock)
            lock = None
        left = set(spool.names()) - report.kept
        if report.stopped or not left or time.monotonic() >= deadline:
            return report


def drain_briefly(spool: Spool, settings: ClientSettings, *, seconds: float) -> Report:
    """What a session start does before it asks for context: one pass. A drain that pauses sees that nothing is left."""
    report = Report()
    detached.nudge(settings)
    _Drain(spool, settings, report, time.monotonic() + seconds).run(passes=1)
    return report


def deliver(spool: Spool, settings: ClientSettings, *, seconds: float) -> Report:
    """For a person who waits for it, beside any drain that pauses: ends with the first request that nobody answers."""
    report = Report()
    _Drain(spool, settings, report, time.monotonic() + seconds, is_patient=False).run()
    return report


class _Drain:
    def __init__(
        self,
        spool: Spool,
        settings: ClientSettings,
        report: Report,
        deadline: float,
        *,
        is_patient: bool = True,
    ) -> None:
        self._spool = spool
        self._settings = settings
        self._report = report
        self._deadline = deadline
        self._is_patient = is_patient
        self._items_max = limits.BATCH_ITEMS_MAX
        self._is_tidy = False
        #: Whether a nudge ends the pause: not where a try was counted, nor where the server asked for the pause.
        self._may_hurry = False

    def run(self, *, passes: int | None = None) -> None:
        pause = limits.DRAIN_PAUSE_SECONDS
        while self._left() > 0 and not self._report.stopped:
            before = self._report.delivered + self._report.rejected
            nudged = detached.nudged_ns(self._settings)
            asked = self._turn()
            if self._report.is_elsewhere:
                return
            passes = None if passes is None else passes - 1
            if not self._spool.names() or passes == 0 or self._report.stopped:
                return
            if self._report.delivered + self._report.rejected > before and asked is None:
                pause = limits.DRAIN_PAUSE_SECONDS
                continue
            self._wait(max(pause, asked or 0.0), nudged)
            pause = min(pause * 2, limits.DRAIN_PAUSE_MAX_SECONDS)

    def _turn(self) -> float | None:
        """One pass, in which no other drain sends; as `_one_pass`. Where nobody is reached nobody waits for that."""
        self._tidy()
        if self._spool.names() and not self._is_answering():
            return 0.0
        lock = self._my_turn()
        if lock is None:
            self._report.is_elsewhere = True
            return None
        try:
            return self._one_pass()
        finally:
            os.close(lock)

    def _is_answering(self) -> bool:
        """Whether the server says anything. A host that swallows packets, or a server that hangs, takes the whole time to say nothing."""
        seconds = min(limits.DRAIN_REQUEST_SECONDS, max(0.05, self._left()))
        try:
            gate.knock(self._settings.url, timeout_seconds=seconds)
        except gate.NoAnswer as error:
            self._unanswered(error, len(self._spool.names()))
            return False
        return True

    def _unanswered(self, error: gate.NoAnswer, waiting: int) -> None:
        if isinstance(error, gate.Unusable):
            self._report.stopped, self._report.status = str(error), error.status
            return
        self._log(f"no answer ({error}); {waiting} kept")
        self._may_hurry = True
        if not self._is_patient:
            self._report.stopped = f"no answer from {self._settings.url} ({error})"

    def _my_turn(self) -> int | None:
        """The lock of the one that sends; None when another one sent until the time was over."""
        while (lock := detached.try_sending(self._settings)) is None:
            if self._left() <= _LOOK_SECONDS:
                return None
            time.sleep(_LOOK_SECONDS)
        return lock

    def _one_pass(self) -> float | None:
        """Try each entry once, oldest first; returns how long the server asked to wait, if it did."""
        self._may_hurry = False
        self._report.kept = set()
        while self._left() > 0 and not self._report.stopped:
            batch = self._next_batch()
            if not batch:
                return None
            asked = self._post(batch)
            if asked is not None:
                return asked
        return None

    def _next_batch(self) -> list[Entry]:
        """The oldest entries not yet tried in this pass, within the limits of items and bytes."""
        batch: list[Entry] = []
        size = 0
        for name in self._spool.names():
            if name in self._report.kept:
                continue
            entry = self._spool.read(name)
            if entry is None:
                continue
            if batch and size + entry.size > limits.SPOOL_BATCH_BYTES:
                break
            batch.append(entry)
            size += entry.size
            if len(batch) >= self._items_max:
                break
        return batch

    def _post(self, batch: list[Entry]) -> float | None:
        body = json.dumps([{"url": entry.url, "body": entry.body} for entry in batch]).encode("ascii")
        self._report.kept.update(entry.name for entry in batch)
        try:
            answer = gate.request(
                "POST",
                self._settings.url,
                "/hook/batch?wait=commit",
                token=self._settings.token(),
                timeout_seconds=min(limits.DRAIN_REQUEST_SECONDS, max(0.05, self._left())),
                body=body,
            )
        except gate.NoAnswer as error:
            self._unanswered(error, len(batch))
            return 0.0
        settled = self._settle(batch, _results(answer.body))
        return self._after(batch, answer, settled)

    def _settle(self, batch: list[Entry], results: list[tuple[str, str]]) -> int:
        """Act on one status per entry, in order; entries without one (a cut answer) stay."""
        settled = 0
        for entry, (status, reason) in zip(batch, results, strict=False):
            if status in _DONE:
                self._spool.remove(entry.name)
                self._report.delivered += 1
            elif status in _ASIDE:
                self._reject(entry, f"the server calls it {status}: {reason}")
            elif status != "refused" or not self._count_try(entry, reason or "refused"):
                continue
            settled += 1
        return settled

    def _after(self, batch: list[Entry], answer: gate.Answer, settled: int) -> float | None:
        """What the answer as a whole asks for: nothing, a pause, smaller batches, or an end."""
        status = answer.status
        if status in (200, 202):
            self._items_max = limits.BATCH_ITEMS_MAX if settled else self._items_max
            return None if settled else 0.0
        self._log(f"the server answered {status}; {len(batch) - settled} of {len(batch)} kept")
        if status in _WAIT_STATUSES:
            self._may_hurry = not answer.retry_after
            return answer.retry_after or 0.0
        if status in _STOP_STATUSES or 300 <= status < 400:
            self._report.stopped, self._report.status = f"{self._settings.url} answered {status}", status
            return 0.0
        if settled:
            return None
        if len(batch) > 1:  # one of them spoils the batch: find it
            self._items_max = 1 if status != 413 else max(1, len(batch) // 2)
            self._report.kept.difference_update(entry.name for entry in batch)
            return None
        if status in _REJECT_STATUSES:
            self._reject(batch[0], f"the server answered {status}")
            return None
        return None if self._count_try(batch[0], f"the server answered {status}") else 0.0

    def _count_try(self, entry: Entry, reason: str) -> bool:
        """Returns whether that was the last one, and the entry moved aside."""
        if entry.tries + 1 >= limits.SPOOL_TRIES:
            self._reject(entry, f"given up after {limits.SPOOL_TRIES} tries: {reason}")
            return True
        self._spool.count_try(entry)
        return False

    def _reject(self, entry: Entry, reason: str) -> None:
        self._spool.reject(entry.name, reason)
        self._report.rejected += 1
        self._log(f"{entry.name} moved to rejected/")

    def _tidy(self) -> None:
        if self._is_tidy:
            return
        self._is_tidy = True
        now_us = time.time_ns() // 1000
        taken = self._spool.take_orphans(now_us)
        gone = self._spool.evict(now_us)
        session_state.forget_old(self._settings.state_dir, now_us)
        if taken:
            self._log(f"{len(taken)} entries of hooks that died were taken in")
        if gone:
            self._log(f"WARNING: {len(gone)} entries were too old or too many and are lost, first {gone[0]}")

    def _wait(self, seconds: float, nudged: int) -> None:
        """Pause, unless a hook nudges, or has since `nudged`."""
        until = min(time.monotonic() + seconds, self._deadline)
        while (left := until - time.monotonic()) > 0:
            if self._may_hurry and detached.nudged_ns(self._settings) != nudged:
                return
            time.sleep(min(0.05, left))

    def _left(self) -> float:
        return self._deadline - time.monotonic()

    def _log(self, text: str) -> None:
        log(self._settings, text)


def log(settings: ClientSettings, text: str) -> None:
    """One line in the drain's log; neither payloads nor the server's words are written there."""
    path = os.path.join(settings.state_dir, "drain.log")
    line = f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {os.getpid()} {text}\n"
    try:
        if os.path.exists(path) and os.stat(path).st_size + len(line) > limits.DRAIN_LOG_MAX_BYTES:
            os.replace(path, f"{path}.1")
        with open(
            os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600), "a", encoding="utf-8"
        ) as file:
            file.write(line)
    except OSError:
        pass  # a log that cannot be written must not stop the delivery


def _results(body: bytes) -> list[tuple[str, str]]:
    """Status and reason of each item, in order; nothing at all when the answer cannot be read."""
    try:
        found = json.loads(body)["results"]
        return [
            (str(item.get("status", "")), str(item.get("reason") or item.get("error") or ""))
            for item in found
        ]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return []

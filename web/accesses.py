"""Pages that were shown as hits, told to the writer: thrifty, together, and never in the way of an answer."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

from memory_core import limits
from memory_core.clock import Clock
from memory_core.commands.accesses import CountAccesses
from memory_core.errors import CoreError
from memory_core.ids import id_text
from web.auth import Caller
from web.gate import Gate
from web.identity import CommandId, body_hash, canonical

logger = logging.getLogger(__name__)


class Accesses:
    """What was come upon since the last flush. A count that gets lost with the process is a loss of nothing else.

    Its thread starts with the first page noted, so after the fork.
    """

    def __init__(self, gate: Gate, clock: Clock) -> None:
        self._gate = gate
        self._clock = clock
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        #: When a principal last came upon a page, as far as this process remembers.
        self._known: dict[tuple[str, bytes], float] = {}
        self._waiting: dict[Caller, list[bytes]] = {}

    def note(self, caller: Caller, page_ids: Sequence[bytes]) -> None:
        """Returns at once; a page that the principal came upon less than `ACCESS_THROTTLE_SECONDS` ago is passed over."""
        now = self._clock.monotonic()
        with self._lock:
            fresh = [page_id for page_id in page_ids if self._is_fresh(caller.principal, page_id, now)]
            if not fresh or self._stopping.is_set():
                return
            self._waiting.setdefault(caller, []).extend(fresh)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="accesses", daemon=True)
                self._thread.start()
        self._wake.set()

    def flush(self) -> None:
        """Append what waits. What the broker does not take now is not counted."""
        with self._lock:
            waiting, self._waiting = self._waiting, {}
        for caller, page_ids in waiting.items():
            for start in range(0, len(page_ids), limits.ACCESS_PAGES_MAX):
                self._append(caller, page_ids[start : start + limits.ACCESS_PAGES_MAX])

    def stop(self) -> None:
        self._stopping.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(limits.BROKER_APPEND_SECONDS * 4)
        self.flush()

    def _is_fresh(self, principal: str, page_id: bytes, now: float) -> bool:
        key = (principal, page_id)
        last = self._known.get(key)
        if last is not None and now - last < limits.ACCESS_THROTTLE_SECONDS:
            return False
        if len(self._known) >= limits.ACCESS_KNOWN_MAX:
            # The writer throttles too; forgetting only costs a few commands more.
            self._known.clear()
        self._known[key] = now
        return True

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._wake.wait()
            # What comes meanwhile goes along.
            self._stopping.wait(limits.ACCESS_FLUSH_SECONDS)
            self._wake.clear()
            self.flush()

    def _append(self, caller: Caller, page_ids: Sequence[bytes]) -> None:
        command = CountAccesses(page_ids=tuple(map(id_text, page_ids)))
        envelope = self._gate.envelope(
            command,
            CommandId(value=self._gate.ids.new(), is_foreign=False),
            caller,
            received_hash=body_hash(self._gate.hash_key, canonical(command)),
            wants_reply=False,
        )
        try:
            self._gate.take([envelope])
        except CoreError as error:
            logger.info(
                "Page accesses were not counted.", extra={"action": "accesses_lost", "code": error.code}
            )

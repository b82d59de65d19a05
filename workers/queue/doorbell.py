"""The writer's doorbell: rung beside the request, never by it."""

from __future__ import annotations

import logging
import os
import threading
import weakref
from collections.abc import Callable

logger = logging.getLogger(__name__)


class Doorbell:
    """Calls `ring` in a thread of its own, at most one call waiting. Calls may be lost: the writer also looks by itself."""

    def __init__(self, ring: Callable[[], None]) -> None:
        self._call = ring
        self._reset()
        reset = weakref.WeakMethod(self._reset)
        os.register_at_fork(after_in_child=lambda: (bound := reset()) and bound())

    def ring(self) -> None:
        """Ask for one ring; returns at once, raises nothing."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._answer, name="doorbell", daemon=True)
                self._thread.start()
        self._wanted.set()

    def close(self, timeout: float = 1.0) -> None:
        """Stop the thread, waiting `timeout` seconds for a ring that is under way."""
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            self._closing.set()
            self._wanted.set()
            thread.join(timeout)
            self._closing.clear()

    def _answer(self) -> None:
        while True:
            self._wanted.wait()
            self._wanted.clear()
            if self._closing.is_set():
                return
            try:
                self._call()
            except Exception as error:  # whatever the ringing library raises, a lost ring is no failure
                logger.warning("the doorbell did not ring: %s", error, extra={"action": "doorbell_failed"})

    def _reset(self) -> None:
        """A forked child has no thread, and what its parent's thread held stays locked for ever."""
        self._lock = threading.Lock()
        self._wanted = threading.Event()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

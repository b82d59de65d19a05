"""Keeping a session's lease while a turn runs: renewed in the background; the first failure ends the turn."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType

from client.durable.errors import LeaseLost
from client.durable.waiting import Cancellation
from memory_core.errors import CoreError

#: Waits so many seconds; true when there is nothing more to renew.
Pause = Callable[[threading.Event, float], bool]


class LeaseKeeper:
    """`with LeaseKeeper(renew, cancellation, seconds=60): …` renews until the block ends."""

    def __init__(
        self,
        renew: Callable[[], object],
        cancellation: Cancellation,
        *,
        seconds: float,
        pause: Pause = threading.Event.wait,
    ) -> None:
        self._renew = renew
        self._cancellation = cancellation
        self._seconds = seconds
        self._pause = pause
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="memoryd-lease", daemon=True)

    def __enter__(self) -> LeaseKeeper:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Waits for no renewal that is on its way: it can only fail, and nobody listens then."""
        self.stop()

    def stop(self) -> None:
        self._is_over.set()

    def _keep(self) -> None:
        while not self._pause(self._is_over, self._seconds):
            try:
                self._renew()
            except CoreError as error:
                if not self._is_over.is_set():
                    self._cancellation.cancel(LeaseLost(f"the session's lease could not be renewed: {error}"))
                return

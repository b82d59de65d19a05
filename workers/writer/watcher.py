"""Being told at once of changes below the wiki root; without it, the look every 30 seconds finds them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from watchfiles import Change, watch

from memory_core import limits
from memory_core.clock import Clock

logger = logging.getLogger(__name__)

#: How often a watcher with nothing to tell shows that it lives, and sees whether its root is still the same.
_BEAT_MS = 5_000


class Watcher:
    """A thread that tells `touched` the directories (`<workspace>/<project>`) in which something happened."""

    def __init__(self, root: Path, clock: Clock) -> None:
        self._root = root.resolve()
        self._clock = clock
        self._touched: Callable[[Iterable[str]], None] = lambda _: None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watcher", daemon=True)
        self._reason = "starting"
        self._beat_at: float | None = None

    def start(self, touched: Callable[[Iterable[str]], None]) -> None:
        self._touched = touched
        self._thread.start()

    def stop(self, seconds: float = 2.0) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(seconds)

    def state(self) -> dict[str, Any]:
        """`watching`, or `polling` with the reason: then changes are seen within 30 seconds."""
        silent = None if self._beat_at is None else self._clock.monotonic() - self._beat_at
        reason = self._reason
        if not reason and silent is not None and silent > limits.WIKI_SILENT_SECONDS:
            reason = f"the watcher has been silent for {silent:.0f} s"
        return {
            "state": "polling" if reason else "watching",
            "reason": reason,
            "silent_seconds": None if silent is None else round(silent, 1),
        }

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._follow()
            except Exception as error:
                self._reason = f"changes are not told: {error}"[:300]
                logger.warning(
                    "the wiki is looked at every 30 seconds only: %s",
                    error,
                    extra={"action": "watcher_degraded", "reason": type(error).__name__},
                )
                self._stopping.wait(limits.RECONCILE_SECONDS)

    def _follow(self) -> None:
        """Until told to stop, or until the root is another directory than the one that is watched."""
        identity = self._identity()
        changes = watch(
            self._root,
            watch_filter=self._concerns,
            debounce=round(limits.WATCH_DEBOUNCE_SECONDS * 1000),
            step=100,
            stop_event=self._stopping,
            rust_timeout=_BEAT_MS,
            yield_on_timeout=True,
            raise_interrupt=False,
            ignore_permission_denied=True,
        )
        for told in changes:
            self._beat_at, self._reason = self._clock.monotonic(), ""
            directories = {directory for _, path in told if (directory := self._directory(path))}
            if directories:
                self._touched(directories)
            if self._identity() != identity:
                return

    def _identity(self) -> tuple[int, int]:
        state = self._root.stat()
        return state.st_dev, state.st_ino

    def _concerns(self, _change: Change, path: str) -> bool:
        return self._directory(path) is not None

    def _directory(self, path: str) -> str | None:
        """The project's directory that a path lies in; None for what is hidden below the root."""
        try:
            parts = Path(path).relative_to(self._root).parts
        except ValueError:
            return None
        if len(parts) < 2 or any(part.startswith(".") for part in parts):
            return None
        return "/".join(parts[:2])

"""The writer's turn at the wiki's files: what the outbox promises comes onto the disk after the commit."""

from __future__ import annotations

import logging
from collections.abc import Callable

from memory_core import limits
from memory_core.clock import Clock
from memory_core.commands import files
from memory_core.commands.lost_writes import NOTHING_LOST
from memory_core.wiki.outbox import Installer
from workers.writer.engine import Engine

logger = logging.getLogger(__name__)


class WikiFiles:
    """`redact` removes secrets from a text; it is asked only when somebody else's bytes are found. `lost_before`: see
    `memory_core.commands.lost_writes`."""

    def __init__(
        self,
        engine: Engine,
        installer: Installer,
        redact: Callable[[str], str],
        clock: Clock,
        *,
        lost_before: int = NOTHING_LOST,
    ) -> None:
        self._engine = engine
        self._installer = installer
        self._redact = redact
        self._clock = clock
        self._lost_before = lost_before
        self._is_clean = False
        #: Behind which row the next pass goes on, and from when on it may.
        self._after = 0
        self._next_look = 0.0
        self._is_any_held = False

    def install(self, *, promised: bool) -> None:
        """One bounded step: what was promised just now, or what an earlier step had to leave."""
        if not self._is_clean:
            self._engine.read(lambda tx: files.clean_leftovers(tx, self._installer))
            self._is_clean = True
        now = self._clock.monotonic()
        if not promised and now < self._next_look:
            return
        done = files.install_step(
            self._engine.originate,
            self._installer,
            self._redact,
            after=self._after,
            lost_before=self._lost_before,
        )
        self._is_any_held = self._is_any_held or done.held > 0
        if done.more:
            self._after, self._next_look = done.last, now
            return
        # From the first row again: what was blocked (a folder in the way, a full disk) is tried once more then.
        pause = limits.FILE_QUIET_SECONDS if self._is_any_held else limits.OUTBOX_RETRY_SECONDS
        self._after, self._next_look, self._is_any_held = 0, now + pause, False

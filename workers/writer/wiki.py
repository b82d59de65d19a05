"""The writer's turn at the wiki's files: what the outbox promises comes onto the disk after the commit."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from memory_core import limits
from memory_core.clock import Clock
from memory_core.commands import files
from memory_core.commands.lost_writes import NOTHING_LOST
from memory_core.wiki.outbox import Installer, Outcome
from workers.writer.engine import Engine

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class _Waiting:
    """A promise that something stands in the way of. Times on the monotonic clock, seconds."""

    file: str
    reason: str
    is_away: bool
    next_try: float
    pause: float


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
        self._is_back = False
        #: By promise: a newer version of the file, or the file in a folder that was renamed, is tried at once.
        self._waiting: dict[files.Key, _Waiting] = {}
        #: Told where what is in the way has changed: directories of projects.
        self.changed: Callable[[set[str]], None] = lambda _directories: None

    def obstacles(self) -> Mapping[str, str]:
        """Files (relative to the wiki root) that cannot be put in place yet, and why. Any thread may ask."""
        return {one.file: one.reason for one in list(self._waiting.values())}

    def came_back(self) -> None:
        """A directory that was away is there again: what waits for one is tried at once. Any thread may call it."""
        self._is_back = True

    def install(self, *, promised: bool) -> None:
        """One bounded step: what was promised just now, or what an earlier step had to leave."""
        if not self._is_clean:
            self._engine.read(lambda tx: files.clean_leftovers(tx, self._installer))
            self._is_clean = True
        now = self._clock.monotonic()
        if self._is_back:
            self._is_back = False
            self._waiting = {
                key: replace(one, next_try=now) if one.is_away else one for key, one in self._waiting.items()
            }
            self._after, self._next_look = 0, now
        if not promised and now < self._next_look:
            return
        begins = self._after == 0
        done = files.install_step(
            self._engine.originate,
            self._installer,
            self._redact,
            after=self._after,
            lost_before=self._lost_before,
            leave={key for key, one in self._waiting.items() if one.next_try > now},
        )
        self._remember(done, now, is_whole=begins and not done.more)
        self._is_any_held = self._is_any_held or done.held > 0
        if done.more:
            self._after, self._next_look = done.last, now
            return
        # From the first row again: what was blocked (a full disk, say) is tried once more then.
        pause = limits.FILE_QUIET_SECONDS if self._is_any_held else limits.OUTBOX_RETRY_SECONDS
        self._after, self._next_look, self._is_any_held = 0, now + pause, False

    def _remember(self, done: files.StepReport, now: float, *, is_whole: bool) -> None:
        """Note what is in the way of what; each try that fails is followed by a longer pause."""
        before, after = self.obstacles(), dict(self._waiting)
        for key in done.tried:
            after.pop(key, None)
        rows = {key[0] for key in done.promised}
        after = {
            key: one for key, one in after.items() if key in done.promised or not (is_whole or key[0] in rows)
        }
        for outcome in done.obstacles:
            key = (outcome.order.seq, outcome.order.sha256, outcome.order.file)
            after[key] = self._waiting_for(outcome, self._waiting.get(key), now)
        self._waiting = after
        found = self.obstacles()
        for file in found.keys() - before.keys():
            logger.warning(
                "a page's file could not be put in place; it is tried again later",
                extra={"action": "wiki_install_blocked", "file": file, "reason": found[file]},
            )
        if changed := {file for file in found.keys() | before.keys() if found.get(file) != before.get(file)}:
            self.changed({"/".join(file.split("/")[:2]) for file in changed})

    def _waiting_for(self, outcome: Outcome, before: _Waiting | None, now: float) -> _Waiting:
        pause = (
            min(2 * before.pause, limits.OUTBOX_RETRY_MAX_SECONDS) if before else limits.OUTBOX_RETRY_SECONDS
        )
        return _Waiting(
            file=outcome.order.file,
            reason=outcome.reason,
            is_away=outcome.is_away,
            next_try=now + pause,
            pause=pause,
        )

"""The loop of the supervisor: start in order, judge, restart, and drain in order."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Sequence

from memory_core import limits
from memory_core.clock import Clock
from workers import exit_codes
from workers.supervisor.child import Child
from workers.supervisor.wake import Wake

logger = logging.getLogger(__name__)

_TURN_SECONDS = 0.1
#: A longer gap between two turns means that this process, most likely the machine, was frozen.
_FREEZE_SECONDS = 3.0


class Tree:
    """All children. `run` blocks until the tree is down; single-threaded on purpose (the tether is tied to a thread)."""

    def __init__(
        self,
        children: Sequence[Child],
        *,
        clock: Clock,
        wake: Wake,
        on_change: Callable[[Sequence[Child]], None],
        on_ready: Callable[[], None],
        on_stop: Callable[[], None],
    ) -> None:
        self._children = {child.spec.name: child for child in children}
        self._clock = clock
        self._wake = wake
        self._on_change = on_change
        self._on_ready = on_ready
        self._on_stop = on_stop
        self._announced = False
        self._last_turn = clock.monotonic()
        self._refused = False

    def run(self) -> int:
        """Keep the tree up until a signal asks to stop, or a child refuses to work; the exit code."""
        while not self._wake.stops and not self._refused:
            self._turn()
            self._wake.wait(_TURN_SECONDS)
        self._drain()
        return exit_codes.REFUSED if self._refused else exit_codes.OK

    def _turn(self) -> None:
        self._forgive_a_freeze()
        for child in self._children.values():
            self._bury(child)
            child.look()
            if not all(self._children[name].is_ready for name in child.spec.depends_on):
                child.excuse()
            elif child.hangs:
                child.kill_as_hanging()
        if self._refused:
            return  # who refused to work is not started again to be ended at once
        for child in self._children.values():
            self._start_if_due(child)
        _reap_strangers({child.pid for child in self._children.values()})
        if not self._announced and self._is_ready():
            self._announced = True
            self._on_ready()

    def _is_ready(self) -> bool:
        return all(child.is_ready for child in self._children.values() if not child.spec.is_optional)

    def _start_if_due(self, child: Child) -> None:
        due = child.start_at is not None and child.start_at <= self._clock.monotonic()
        # Only the first start waits: later a child must bear that another one is away.
        if due and all(self._children[name].was_ever_ready for name in child.spec.depends_on):
            child.start()
            if child.process is not None and child.process.stdout is not None:
                self._wake.follow(child.spec.name, child.process.stdout)
            self._on_change(list(self._children.values()))

    def _bury(self, child: Child, *, was_asked: bool = False) -> None:
        if child.has_died(was_asked=was_asked):
            self._refused = self._refused or child.last_code == exit_codes.REFUSED
            self._on_change(list(self._children.values()))

    def _forgive_a_freeze(self) -> None:
        now = self._clock.monotonic()
        if now - self._last_turn > _FREEZE_SECONDS:
            for child in self._children.values():
                child.excuse()
        self._last_turn = now

    def _drain(self) -> None:
        """Ask rank after rank to end; what does not is killed. A second request to stop kills at once."""
        logger.info("stopping", extra={"action": "tree_stopping"})
        self._on_stop()
        patience = self._wake.stops + 1
        end = self._clock.monotonic() + limits.DRAIN_TREE_SECONDS
        for rank in sorted({child.spec.stop_rank for child in self._children.values()}):
            group = [child for child in self._children.values() if child.spec.stop_rank == rank]
            for child in group:
                child.ask_to_end()
            limit = min(end, self._clock.monotonic() + max(child.spec.stop_seconds for child in group))
            self._await(group, until=limit, patience=patience)
            for child in group:
                if child.process is not None:
                    logger.warning(
                        "%s did not end in time and is killed",
                        child.spec.name,
                        extra={"action": "child_killed", "child": child.spec.name},
                    )
                    child.signal_group(signal.SIGKILL)
            self._await(group, until=self._clock.monotonic() + 5.0, patience=None)
        self._on_change([])
        logger.info("stopped", extra={"action": "tree_stopped"})

    def _await(self, group: Sequence[Child], *, until: float, patience: int | None) -> None:
        """Until all of the group ended, `until` passed, or somebody asked to stop `patience` times."""
        while True:
            for child in group:
                self._bury(child, was_asked=True)
            if all(child.process is None for child in group) or self._clock.monotonic() >= until:
                return
            if patience is not None and self._wake.stops >= patience:
                return
            self._wake.wait(_TURN_SECONDS)


def _reap_strangers(own: set[int | None]) -> None:
    """As PID 1 of a container every orphan is ours to bury."""
    if os.getpid() != 1:
        return
    try:
        ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is not None and ended.si_pid not in own:
            os.waitpid(ended.si_pid, os.WNOHANG)
    except ChildProcessError:
        pass

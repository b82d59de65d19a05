"""The parent's side of a compute child: starts it, feeds it, hears it, kills it. Nothing here blocks for longer than a lock.

A child that is stopped, deaf or stuck in C code costs its job and nothing else: writing and reading
have threads of their own, and SIGKILL to its process group ends both.
"""

from __future__ import annotations

import logging
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO

import msgspec

from memory_core.clock import Clock
from workers.pool import frames

logger = logging.getLogger(__name__)

_MODULE = ("-m", "workers.pool.compute_child")


@dataclass(frozen=True, kw_only=True)
class Died:
    """The child is gone. `code` as `subprocess` gives it: negative for a signal."""

    code: int


#: What a child says, in the order in which it says it; `Died` is the last.
Heard = frames.FromChild | Died
Hear = Callable[[Heard], None]
Spawn = Callable[[Sequence[str]], "subprocess.Popen[bytes]"]


class Nursery:
    """Starts processes, all from one thread that lives as long as this process.

    The kernel kills a tied child when the *thread* that started it ends, and the threads of a Celery pool end.
    """

    def __init__(self) -> None:
        self._orders: queue.SimpleQueue[tuple[Sequence[str], queue.SimpleQueue[_Spawned]]] = (
            queue.SimpleQueue()
        )
        threading.Thread(target=self._run, name="nursery", daemon=True).start()

    def spawn(self, argv: Sequence[str]) -> subprocess.Popen[bytes]:
        """Pipes to stdin and from stdout, a process group of its own. Raises `OSError`."""
        answer: queue.SimpleQueue[_Spawned] = queue.SimpleQueue()
        self._orders.put((argv, answer))
        made = answer.get()
        if isinstance(made, OSError):
            raise made
        return made

    def _run(self) -> None:
        while True:
            argv, answer = self._orders.get()
            try:
                made = subprocess.Popen(
                    argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
                )
            except OSError as error:
                answer.put(error)
            else:
                answer.put(made)


_Spawned = subprocess.Popen[bytes] | OSError


class ComputeChild:
    """One slot's child. Its process comes with the first work, goes when it is ended, and comes again with the next.

    Used by one thread at a time; only `kill` may come from any.
    """

    def __init__(self, spawn: Spawn, clock: Clock, argv: Sequence[str] = _MODULE) -> None:
        self._spawn = spawn
        self._clock = clock
        self._argv = argv
        self._life: _Life | None = None
        self._has_work = False
        self._used_at = clock.monotonic()

    @property
    def pid(self) -> int | None:
        """None while there is no process."""
        return self._life.process.pid if self._life is not None else None

    def begin(self, work: frames.Work, hear: Hear) -> None:
        """Give it work; `hear` is told from another thread what it says. Raises `OSError` where no process can be had."""
        if self._life is None or self._life.has_ended():
            self._life = _Life(self._spawn([sys.executable, "-P", *_tied(), *self._argv]))
        self._life.hear = hear
        self._has_work = True
        self._life.outbox.put(work)

    def tell(self, message: frames.Cancel | frames.Reply) -> None:
        if self._life is not None:
            self._life.outbox.put(message)

    def kill(self) -> None:
        """Kill it and what it started; `hear` is told."""
        life = self._life
        if life is not None:
            life.kill()

    def end(self) -> None:
        """Kill it, if it is there; nobody hears from it any more."""
        life, self._life = self._life, None
        if life is not None:
            life.hear = _deaf
            life.kill()

    def lay_down(self) -> None:
        """The work is over; what the child still says of it concerns nobody. Nothing where there was no work."""
        if self._life is not None:
            self._life.hear = _deaf
        if self._has_work:
            self._has_work = False
            self._used_at = self._clock.monotonic()

    def rest(self, idle_seconds: float) -> None:
        """End the process if it had no work for so long."""
        if self._life is not None and self._clock.monotonic() - self._used_at >= idle_seconds:
            self.end()


class _Life:
    """One process, from its start to its burial, with the two threads that serve its pipes."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.hear: Hear = _deaf
        self.outbox: queue.SimpleQueue[frames.ToChild | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        for name, target in (("to-child", self._write), ("from-child", self._read)):
            threading.Thread(target=target, name=name, daemon=True).start()

    def has_ended(self) -> bool:
        """Also when it is not yet buried."""
        with self._lock:
            if self.process.returncode is not None:
                return True
            flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
            return os.waitid(os.P_PID, self.process.pid, flags) is not None

    def kill(self) -> None:
        with self._lock:
            # Until it is waited for, its number cannot belong to a stranger.
            if self.process.returncode is None:
                try:
                    os.killpg(self.process.pid, signal.SIGKILL)
                except (ProcessLookupError, PermissionError):  # macOS says the latter of a group of zombies
                    pass

    def _write(self) -> None:
        pipe = _pipe(self.process.stdin)
        try:
            while (message := self.outbox.get()) is not None:
                frames.send(pipe, message)
        except (OSError, ValueError):
            pass  # it is gone; who reads from it notices
        try:
            pipe.close()
        except OSError:
            pass

    def _read(self) -> None:
        pipe = _pipe(self.process.stdout)
        try:
            while (message := frames.receive_from_child(pipe)) is not None:
                self.hear(message)
        except (OSError, ValueError, msgspec.MsgspecError) as error:
            logger.error(
                "a compute child cannot be understood and is killed (%s)",
                type(error).__name__,
                extra={"action": "compute_child_garbled"},
            )
        pipe.close()
        self.outbox.put(None)
        # What closed its pipe is of no use any more, whether it lives or not, and neither is what it left behind.
        self.kill()
        os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOWAIT)
        with self._lock:
            code = self.process.wait()
        self.hear(Died(code=code))


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise ValueError("a compute child is started with pipes")
    return pipe


def _tied() -> tuple[str, ...]:
    return ("-m", "workers.tether", str(os.getpid()))


def _deaf(_: Heard) -> None:
    """Nobody is interested any more."""

"""What wakes the supervisor: signals, the end of a child, and what a captured child writes."""

from __future__ import annotations

import logging
import os
import selectors
import signal
from types import FrameType
from typing import IO

from memory_core import limits

_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Wake:
    """Waits without polling for signals, and passes the lines of captured children on to their loggers."""

    def __init__(self) -> None:
        #: How often somebody asked to stop.
        self.stops = 0
        self._selector = selectors.DefaultSelector()
        self._reader, self._writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._selector.register(self._reader, selectors.EVENT_READ, None)
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _ignore)
        for number in _STOP_SIGNALS:
            signal.signal(number, self._stop)

    def wait(self, seconds: float) -> None:
        """Until something happened, at most so long."""
        for key, _ in self._selector.select(seconds):
            if key.data is None:
                os.read(self._reader, 4096)
            else:
                self._pass_on(key.fd, key.data)

    def follow(self, name: str, output: IO[bytes]) -> None:
        """Log what a child writes, until it closes its side."""
        os.set_blocking(output.fileno(), False)
        self._selector.register(output, selectors.EVENT_READ, (output, logging.getLogger(f"output.{name}")))

    def _pass_on(self, descriptor: int, followed: tuple[IO[bytes], logging.Logger]) -> None:
        output, logger = followed
        try:
            data = os.read(descriptor, 65_536)
        except BlockingIOError:
            return
        if not data:
            self._selector.unregister(output)
            output.close()
            return
        for line in data.decode("utf-8", "replace").splitlines():
            if line.strip():
                logger.info(
                    "%s", line.strip()[: limits.LOG_MESSAGE_MAX_CHARS], extra={"action": "child_output"}
                )

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        self.stops += 1


def _ignore(_number: int, _frame: FrameType | None) -> None:
    """SIGCHLD only has to wake us."""

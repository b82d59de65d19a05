"""The processes that search beside this one: started when somebody had to wait, given up when they are gone."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Final

from memory_core import limits
from memory_core.recall.search import Found, Question
from memory_core.recall.turns import Lost, Turns
from web.search_process import FAILED, READY, found_in, packed

logger = logging.getLogger(__name__)

_MODULE: Final = "web.search_process"


def spare_cores() -> int:
    """How many processes can search beside this one without taking its core, at most `SEARCH_PROCESSES_MAX`."""
    return min(
        len(os.sched_getaffinity(0)) - 1 if hasattr(os, "sched_getaffinity") else 1,
        limits.SEARCH_PROCESSES_MAX,
    )


class SearchProcess:
    """One of them; asked by one thread at a time. Calling it searches there: it raises `Lost`, and is of no use any more then."""

    def __init__(self) -> None:
        """Starts it and waits until it can be asked. Raises `OSError`, `Lost`."""
        self._connection, theirs = Pipe()
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", _MODULE, str(theirs.fileno())],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )
        if self._received(limits.SEARCH_PROCESS_START_SECONDS) != READY:
            self.close()
            raise Lost("it said something else than that it is ready")

    def __call__(self, question: Question) -> Found:
        try:
            self._connection.send_bytes(packed(question))
        except OSError as error:
            self.close()
            raise Lost(str(error)) from error
        answer = self._received(limits.SEARCH_PROCESS_ANSWER_SECONDS)
        if answer == FAILED:
            self.close()
            raise Lost("it could not search")
        return found_in(answer)

    def close(self) -> None:
        self._connection.close()
        self.process.kill()
        self.process.wait()

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def _received(self, seconds: float) -> bytes:
        connection: Connection = self._connection
        try:
            if connection.poll(seconds):
                return connection.recv_bytes(limits.SEARCH_MESSAGE_MAX_BYTES)
        except (OSError, EOFError) as error:
            self.close()
            raise Lost("it is gone") from error
        self.close()
        raise Lost("it did not answer in time")


class SearchProcesses:
    """Adds turns while there are cores to spare. Safe to share between threads."""

    def __init__(self, turns: Turns[Question, Found], most: int) -> None:
        self._turns = turns
        self._most = most
        self._lock = threading.Lock()
        self._running: list[SearchProcess] = []
        self._is_starting = False
        self._not_before = 0.0
        self._is_closed = False

    def somebody_waited(self) -> None:
        """Start one more where there is room; returns at once."""
        with self._lock:
            self._running = [one for one in self._running if one.is_alive]
            is_full = len(self._running) >= self._most
            if is_full or self._is_starting or self._is_closed or time.monotonic() < self._not_before:
                return
            self._is_starting = True
        threading.Thread(target=self._start, name="search-process", daemon=True).start()

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            running, self._running = self._running, []
        for one in running:
            one.close()

    def _start(self) -> None:
        try:
            made = SearchProcess()
        except (OSError, Lost) as error:
            self._not_before = time.monotonic() + limits.SEARCH_PROCESS_START_SECONDS
            logger.warning(
                "a process for searching did not start: %s", error, extra={"action": "search_process_lost"}
            )
            return
        finally:
            with self._lock:
                self._is_starting = False
        with self._lock:
            if not self._is_closed:
                self._running.append(made)
                self._turns.add(made)
                return
        made.close()

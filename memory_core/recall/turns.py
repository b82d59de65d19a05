"""Who searches next. Threads of one process take turns: two that compute at once take twice the time each. Processes beside this one
have turns of their own."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from queue import Empty, PriorityQueue
from typing import Generic, NamedTuple, TypeVar

from memory_core import limits

Q = TypeVar("Q")
F = TypeVar("F")


class Lost(Exception):
    """Whoever should have answered is gone; the question is still open."""


class _Turn(NamedTuple, Generic[Q, F]):
    """Those that are free are taken by this order."""

    order: int
    number: int
    #: None: here.
    elsewhere: Callable[[Q], F] | None


class Turns(Generic[Q, F]):
    """`here` turns for this process, and one for each that is added. Safe to share between threads.

    Who is alone stays here, for the way elsewhere costs something; the next one goes elsewhere, where a core is free.
    """

    def __init__(self, here: int) -> None:
        self._free: PriorityQueue[_Turn[Q, F]] = PriorityQueue()
        self._number = itertools.count()
        #: Called after somebody waited for longer than `SEARCH_WAIT_SECONDS`; must return at once and raise nothing.
        self.somebody_waited: Callable[[], None] = _nobody_cares
        for number in range(here):
            self._free.put(_Turn(2 if number else 0, next(self._number), None))

    def add(self, elsewhere: Callable[[Q], F]) -> None:
        """One more turn, outside of this process. It is taken away again when it raises `Lost`."""
        self._free.put(_Turn(1, next(self._number), elsewhere))

    def answer(self, question: Q, here: Callable[[], F], *, may_leave: bool = True) -> F:
        """What `here` or somebody elsewhere answers, whoever is free first; raises what that raises."""
        while True:
            turn = self._next()
            try:
                if turn.elsewhere is None or not may_leave:
                    return here()
                return turn.elsewhere(question)
            except Lost:
                turn = None
            finally:
                if turn is not None:
                    self._free.put(turn)

    def _next(self) -> _Turn[Q, F]:
        try:
            return self._free.get_nowait()
        except Empty:
            began = time.monotonic()
        turn = self._free.get()
        if time.monotonic() - began > limits.SEARCH_WAIT_SECONDS:
            self.somebody_waited()
        return turn


def _nobody_cares() -> None:
    return

"""Waiting for what others do (a model, a tool) in such a way that a cancelled turn goes on at once."""

from __future__ import annotations

import contextvars
import queue
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, TypeVar

from memory_core.errors import CoreError

A = TypeVar("A")


class Cancellation:
    """Whether a turn is to end, and why; the first reason counts. Any thread may ask and cancel."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reason: CoreError | None = None
        self._callbacks: list[Callable[[], object]] = []

    def cancel(self, reason: CoreError) -> None:
        with self._lock:
            if self._reason is not None:
                return
            self._reason = reason
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    @property
    def reason(self) -> CoreError | None:
        return self._reason

    def is_set(self) -> bool:
        """Named as in `threading.Event`, so that tools and models can ask either."""
        return self._reason is not None

    def check(self) -> None:
        """Raises the reason when cancelled."""
        if self._reason is not None:
            raise self._reason

    @contextmanager
    def waking(self, callback: Callable[[], object]) -> Generator[None]:
        """`callback` is called once when it is cancelled, at once where it is already."""
        with self._lock:
            is_late = self._reason is not None
            if not is_late:
                self._callbacks.append(callback)
        if is_late:
            callback()
        try:
            yield
        finally:
            with self._lock:
                if callback in self._callbacks:
                    self._callbacks.remove(callback)


def wait(future: Future[A], cancellation: Cancellation) -> A:
    """The future's result. Raises what it raised, or the reason of the cancellation, which wins."""
    is_over = threading.Event()
    future.add_done_callback(lambda _: is_over.set())
    with cancellation.waking(is_over.set):
        is_over.wait()
    if cancellation.is_set():
        future.cancel()
        cancellation.check()
    return future.result()


class Worker:
    """A thread that does one thing after another. It ends with the process, whatever it hangs in."""

    def __init__(self, name: str) -> None:
        self._waiting: queue.SimpleQueue[Callable[[], object] | None] = queue.SimpleQueue()
        threading.Thread(target=self._work, name=name, daemon=True).start()

    def submit(self, function: Callable[..., A], *arguments: Any) -> Future[A]:
        future: Future[A] = Future()
        context = contextvars.copy_context()
        self._waiting.put(lambda: context.run(_fulfil, future, function, arguments))
        return future

    def end(self) -> None:
        """Once it has done what it has; nobody waits for that."""
        self._waiting.put(None)

    def _work(self) -> None:
        while (task := self._waiting.get()) is not None:
            task()


def _fulfil(future: Future[Any], function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = function(*arguments)
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)

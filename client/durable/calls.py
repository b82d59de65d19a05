"""How the program's own functions are called: in threads, so that a turn that is cancelled need not wait for them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from typing import Any, Protocol

from client.durable.tools import ApprovalRequest, Approve
from client.durable.waiting import Cancellation, Worker
from memory_core.errors import Invalid

#: What a stream that has ended gives.
END = object()
Listener = Callable[[Mapping[str, Any]], Any]


class Calls(Protocol):
    """Functions of the program: models and tools answer with futures, listeners and approvers are waited for."""

    def model(self, function: Callable[..., Any], request: Any) -> Future[Any]: ...
    def advance(self, stream: Any) -> Future[Any]:
        """The next item of what a model streams, or `END`."""
        ...

    def abandon(self, stream: Any) -> None:
        """Nobody reads on."""
        ...

    def tool(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]: ...
    def listen(self, listener: Listener, event: Mapping[str, Any]) -> None: ...
    def approve(self, approve: Approve, request: ApprovalRequest, cancellation: Cancellation) -> Any: ...
    def end(self) -> None: ...
    def leave(self) -> None:
        """Nobody waits for the turn any more: wait for no function of the program either."""
        ...


class ThreadCalls:
    """For a program without an event loop: model and tools run in threads, listener and approver in the turn's own."""

    def __init__(self) -> None:
        self._model: Worker | None = None

    def model(self, function: Callable[..., Any], request: Any) -> Future[Any]:
        return self._worker().submit(_called, function, request)

    def advance(self, stream: Any) -> Future[Any]:
        return self._worker().submit(next, stream, END)

    def abandon(self, stream: Any) -> None:
        worker, self._model = self._worker(), None
        worker.submit(_closed, stream)
        worker.end()

    def tool(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        worker = Worker("memoryd-tool")
        future = worker.submit(_called, function, *arguments)
        worker.end()
        return future

    def listen(self, listener: Listener, event: Mapping[str, Any]) -> None:
        _called(listener, event)

    def approve(self, approve: Approve, request: ApprovalRequest, cancellation: Cancellation) -> Any:
        del cancellation  # whoever is asked cannot be interrupted; it is looked at afterwards
        return _called(approve, request)

    def end(self) -> None:
        if self._model is not None:
            self._model.end()
            self._model = None

    def leave(self) -> None:
        pass

    def _worker(self) -> Worker:
        """One thread for a model: a generator stays in the thread that began it."""
        if self._model is None:
            self._model = Worker("memoryd-model")
        return self._model


def is_stream(value: Any) -> bool:
    return isinstance(value, Iterator) or hasattr(value, "__anext__")


def _called(function: Callable[..., Any], *arguments: Any) -> Any:
    result = function(*arguments)
    if inspect.isawaitable(result) or hasattr(result, "__anext__"):
        if inspect.iscoroutine(result):
            result.close()
        raise Invalid("this function is asynchronous; use AsyncDurableAgentSession")
    return result


def _closed(stream: Any) -> None:
    close = getattr(stream, "close", None)
    if close is not None:
        close()

"""The same session for a program with an event loop. All blocking work is done in threads; there is no second engine."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from types import TracebackType
from typing import Any, TypeVar

from client.durable.agent import Agent, Around
from client.durable.calls import END, Listener
from client.durable.errors import TurnCancelled
from client.durable.redaction import redact_with
from client.durable.session import DurableAgentSession
from client.durable.tools import ApprovalRequest, Approve
from client.durable.turn import TurnResult
from client.durable.waiting import Cancellation, Worker, wait
from client.settings import ClientSettings, load
from memory_core.domain.agent_message import AssetReference, Message
from memory_core.domain.directory import Directory

A = TypeVar("A")


class AsyncDurableAgentSession:
    """As `DurableAgentSession`, awaited. Model, tools, listener and approver may be coroutine functions, a model an
    asynchronous generator; what is not asynchronous among models and tools runs in a thread.

    A `run` whose task is cancelled is dropped: the session is then unusable until `open`.
    """

    def __init__(self, session: DurableAgentSession) -> None:
        self._session = session

    @classmethod
    async def start(
        cls,
        agent: Agent,
        directory: str | os.PathLike[str] = ".",
        *,
        title: str | None = None,
        workspace: str | None = None,
        project: str | None = None,
        settings: ClientSettings | None = None,
        around: Around | None = None,
    ) -> AsyncDurableAgentSession:
        """See `DurableAgentSession.start`."""
        found = settings or load()
        beside = around or around_loop(found)
        return cls(
            await _in_thread(
                lambda: DurableAgentSession.start(
                    agent,
                    directory,
                    title=title,
                    workspace=workspace,
                    project=project,
                    settings=found,
                    around=beside,
                )
            )
        )

    @classmethod
    async def resume(
        cls,
        agent: Agent,
        session_id: str,
        directory: str | os.PathLike[str] = ".",
        *,
        settings: ClientSettings | None = None,
        around: Around | None = None,
    ) -> AsyncDurableAgentSession:
        """See `DurableAgentSession.resume`."""
        found = settings or load()
        beside = around or around_loop(found)
        return cls(
            await _in_thread(
                lambda: DurableAgentSession.resume(
                    agent, session_id, directory, settings=found, around=beside
                )
            )
        )

    @property
    def session_id(self) -> str:
        return self._session.session_id

    @property
    def directory(self) -> Directory:
        return self._session.directory

    @property
    def history(self) -> tuple[Message, ...]:
        return self._session.history

    @property
    def last_sequence(self) -> int:
        return self._session.last_sequence

    @property
    def is_usable(self) -> bool:
        return self._session.is_usable

    @property
    def enabled_tools(self) -> frozenset[str]:
        return self._session.enabled_tools

    def narrow_tools(self, names: Iterable[str]) -> None:
        self._session.narrow_tools(names)

    async def run(
        self,
        message: str | Message,
        *,
        on_event: Listener | None = None,
        approve: Approve | None = None,
    ) -> TurnResult:
        """See `DurableAgentSession.run`. `on_event` and `approve` are called on the event loop."""
        running = asyncio.wrap_future(
            _submitted(lambda: self._session.run(message, on_event=on_event, approve=approve))
        )
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            self._session.drop()
            # How the turn ends nobody asks any more, and the loop need not complain of that.
            running.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
            raise

    def cancel(self, why: str = "the turn was cancelled") -> None:
        self._session.cancel(why)

    async def open(self) -> None:
        await _in_thread(self._session.open)

    async def attach(self, source: bytes | str | os.PathLike[str], kind: str) -> AssetReference:
        return await _in_thread(lambda: self._session.attach(source, kind))

    async def read_asset(self, reference: AssetReference) -> bytes:
        return await _in_thread(lambda: self._session.read_asset(reference))

    async def compact(self, context_window: int, current_tokens: int | None = None) -> Mapping[str, Any]:
        return await _in_thread(lambda: self._session.compact(context_window, current_tokens))

    async def set_title(self, title: str) -> None:
        await _in_thread(lambda: self._session.set_title(title))

    async def close(self) -> str | None:
        return await _in_thread(self._session.close)

    async def release(self) -> None:
        await _in_thread(self._session.release)

    async def __aenter__(self) -> AsyncDurableAgentSession:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await _in_thread(lambda: self._session.__exit__(kind, error, trace))


def around_loop(settings: ClientSettings, **others: Any) -> Around:
    """What an asynchronous session has around it; to be called on its event loop."""
    loop = asyncio.get_running_loop()
    return Around(redact=redact_with(settings.redaction_key), calls=lambda: LoopCalls(loop), **others)


class LoopCalls:
    """Functions of a program with an event loop; fulfils `calls.Calls`. Its methods are called in the turn's thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._model = Worker("memoryd-model")
        #: Set when nobody waits for the turn any more: the loop may have ended.
        self._left = Cancellation()

    def model(self, function: Callable[..., Any], request: Any) -> Future[Any]:
        return self._submit(self._model, function, request)

    def advance(self, stream: Any) -> Future[Any]:
        if hasattr(stream, "__anext__"):
            return self._on_loop(_next(stream))
        return self._model.submit(next, stream, END)

    def abandon(self, stream: Any) -> None:
        if hasattr(stream, "aclose"):
            with suppress(RuntimeError):
                self._on_loop(stream.aclose())
        elif hasattr(stream, "close"):
            self._model.submit(stream.close)

    def tool(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        worker = Worker("memoryd-tool")
        future = self._submit(worker, function, *arguments)
        worker.end()
        return future

    def listen(self, listener: Listener, event: Mapping[str, Any]) -> None:
        if not self._left.is_set():
            wait(self._on_loop(_call(listener, event)), self._left)

    def approve(self, approve: Approve, request: ApprovalRequest, cancellation: Cancellation) -> Any:
        return wait(self._on_loop(_call(approve, request)), cancellation)

    def end(self) -> None:
        self._model.end()

    def leave(self) -> None:
        self._left.cancel(TurnCancelled("nobody waits for the turn any more"))

    def _submit(self, worker: Worker, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        if inspect.iscoroutinefunction(function):
            return self._on_loop(function(*arguments))
        return worker.submit(self._resolved, function, arguments)

    def _resolved(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        result = function(*arguments)
        return self._on_loop(_awaited(result)).result() if inspect.isawaitable(result) else result

    def _on_loop(self, coroutine: Coroutine[Any, Any, A]) -> Future[A]:
        try:
            return asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        except RuntimeError:
            coroutine.close()
            raise


async def _next(stream: Any) -> Any:
    return await anext(stream, END)


async def _awaited(value: Awaitable[A]) -> A:
    return await value


async def _call(function: Callable[..., Any], argument: Any) -> Any:
    result = function(argument)
    return await result if inspect.isawaitable(result) else result


def _submitted(function: Callable[[], A]) -> Future[A]:
    worker = Worker("memoryd-session")
    future = worker.submit(function)
    worker.end()
    return future


async def _in_thread(function: Callable[[], A]) -> A:
    return await asyncio.wrap_future(_submitted(function))

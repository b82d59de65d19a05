"""The same session on an event loop: awaited, streamed, cancelled, dropped; the loop is never held up."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Mapping
from pathlib import Path
from typing import Any

import pytest

from client.durable import (
    AllowOnce,
    AsyncDurableAgentSession,
    ListenerFailed,
    ModelFailed,
    Poisoned,
    TextDelta,
    TurnCancelled,
)
from client.durable.asynchronous import LoopCalls
from tests.client.durable.actors import Desk, Diary, Script, says, wants


class AsyncDesk(Desk):
    """A desk whose session is opened and used on a loop."""

    async def opened(self) -> AsyncDurableAgentSession:
        self.session.release()
        loop = asyncio.get_running_loop()
        found = AsyncDurableAgentSession(self.another(calls=lambda: LoopCalls(loop)))
        await found.open()
        self.steps.clear()
        return found


def on_a_loop(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 25))


def test_a_turn_with_asynchronous_model_tool_listener_and_approver(tmp_path: Path) -> None:
    threads: dict[str, threading.Thread] = {}
    script = Script(wants(("fetch", {"n": 1})), says("fetched"))

    async def model(request: Any) -> Any:
        threads["model"] = threading.current_thread()
        await asyncio.sleep(0)
        return script(request)

    async def fetch(arguments: Mapping[str, Any]) -> str:
        threads["tool"] = threading.current_thread()
        await asyncio.sleep(0)
        return f"page {arguments['n']}"

    async def listen(event: Mapping[str, Any]) -> None:
        threads["listener"] = threading.current_thread()

    async def approve(_: Any) -> AllowOnce:
        threads["approver"] = threading.current_thread()
        await asyncio.sleep(0)
        return AllowOnce()

    async def work() -> None:
        desk = AsyncDesk(tmp_path, Diary().tool("fetch", run=fetch, approval="it fetches"), model=model)
        session = await desk.opened()

        result = await session.run("go", on_event=listen, approve=approve)

        assert result.text == "fetched"
        assert [message.text for message in session.history] == ["go", "", "page 1", "fetched"]
        assert set(threads.values()) == {threading.current_thread()}
        assert set(threads) == {"model", "tool", "listener", "approver"}
        assert await session.close() is not None

    on_a_loop(work())


def test_an_asynchronous_stream_is_told_word_by_word(tmp_path: Path) -> None:
    ended: list[str] = []

    async def model(_: Any) -> AsyncIterator[Any]:
        try:
            yield TextDelta("a")
            yield TextDelta("b")
            yield says("ab")
        finally:
            ended.append("closed")

    async def work() -> None:
        desk = AsyncDesk(tmp_path, model=model)
        session = await desk.opened()
        heard: list[str] = []

        await session.run("go", on_event=lambda event: heard.append(event.get("text", "")))

        assert [text for text in heard if text] == ["a", "b"]
        assert session.history[-1].text == "ab"

    on_a_loop(work())


def test_the_loop_goes_on_while_blocking_tools_and_models_run(tmp_path: Path) -> None:
    async def work() -> None:
        loop = asyncio.get_running_loop()
        goes_on = threading.Event()
        script = Script(wants(("note", {})), says("done"))

        def waits(*_: Any) -> str:
            loop.call_soon_threadsafe(goes_on.set)
            assert goes_on.wait(60)
            goes_on.clear()
            return "noted"

        desk = AsyncDesk(
            tmp_path, Diary().tool(does=waits), model=lambda request: waits() and script(request)
        )
        session = await desk.opened()
        assert (await session.run("go")).text == "done"

    on_a_loop(work())


def test_the_loop_goes_on_while_the_journal_is_written(tmp_path: Path) -> None:
    async def work() -> None:
        loop = asyncio.get_running_loop()
        goes_on = threading.Event()
        desk = AsyncDesk(tmp_path, model=Script(says("done")))
        session = await desk.opened()

        def block() -> None:
            loop.call_soon_threadsafe(goes_on.set)
            assert goes_on.wait(60)

        desk.server.steps.before["begin"] = block
        assert (await session.run("go")).text == "done"

    on_a_loop(work())


def test_a_cancelled_turn_cancels_the_coroutine_that_it_waits_for(tmp_path: Path) -> None:
    async def work() -> None:
        cancelled: list[str] = []
        session: Any = None

        async def model(_: Any) -> Any:
            session.cancel("enough")
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append("model")
                raise

        desk = AsyncDesk(tmp_path, model=model)
        session = await desk.opened()

        with pytest.raises(TurnCancelled):
            await session.run("go")

        assert session.is_usable
        await asyncio.sleep(0)
        assert cancelled == ["model"]

    on_a_loop(work())


def test_a_dropped_run_leaves_the_session_unusable_until_it_is_opened_anew(tmp_path: Path) -> None:
    async def work() -> None:
        started, ended = asyncio.Event(), threading.Event()

        async def slow(_: Mapping[str, Any]) -> str:
            started.set()
            await asyncio.sleep(0.05)
            return "finished"

        script = Script(wants(("slow", {})))
        desk = AsyncDesk(tmp_path, Diary().tool("slow", run=slow), model=script)
        session = await desk.opened()
        desk.server.steps.after["fail"] = ended.set
        running = asyncio.create_task(session.run("go"))
        await started.wait()

        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

        assert not session.is_usable
        with pytest.raises(Poisoned):
            await session.close()
        await asyncio.to_thread(ended.wait, 20)
        # The tool finished what it had begun, and that is in the journal; nobody waited for it.
        assert not session.is_usable
        assert desk.server.is_settled
        await session.open()
        assert session.is_usable
        assert session.history[-1].text == "finished"

    on_a_loop(work())


def test_a_listener_that_fails_on_the_loop_fails_the_turn(tmp_path: Path) -> None:
    async def work() -> None:
        desk = AsyncDesk(tmp_path, model=Script(says("hello")))
        session = await desk.opened()

        async def listen(_: Any) -> None:
            raise OSError("gone")

        with pytest.raises(ListenerFailed):
            await session.run("go", on_event=listen)
        assert session.is_usable

    on_a_loop(work())


def test_a_session_without_a_loop_refuses_what_is_asynchronous(tmp_path: Path) -> None:
    async def model(_: Any) -> Any:
        return says("never")

    desk = Desk(tmp_path, model=model)

    with pytest.raises(Exception, match="AsyncDurableAgentSession"):
        desk.run()
    assert desk.session.is_usable


def test_a_model_that_gives_no_reply_fails_the_turn(tmp_path: Path) -> None:
    async def model(_: Any) -> AsyncIterator[Any]:
        yield TextDelta("half")

    async def work() -> None:
        session = await AsyncDesk(tmp_path, model=model).opened()
        with pytest.raises(ModelFailed, match="without a ModelReply"):
            await session.run("go")

    on_a_loop(work())

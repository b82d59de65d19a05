from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from memory_core.errors import Unavailable
from tests.patience import until
from web.mounted import Message, Mounted, WholeRequest


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    yield loop
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)
    loop.close()


def _request(body: bytes = b"asked", **extra: Any) -> WholeRequest:
    return WholeRequest(
        method="POST", query_string=b"a=1", headers=[(b"x-one", b"1")], body=body, extra=extra
    )


async def _answer(send: Any, *parts: bytes, status: int = 200) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [(b"X-Two", b"2")]})
    for part in parts:
        await send({"type": "http.response.body", "body": part, "more_body": part is not parts[-1]})


def test_a_whole_request_goes_in_and_a_whole_answer_comes_out(loop: asyncio.AbstractEventLoop) -> None:
    seen: list[Message] = []

    async def app(scope: Message, receive: Any, send: Any) -> None:
        seen.append(scope)
        message = await receive()
        assert not message["more_body"]
        await _answer(send, b"you ", message["body"], status=201)

    answer = Mounted(app, loop).ask(_request(mine="there"))

    assert (answer.status, answer.headers, answer.body) == (201, [("X-Two", "2")], b"you asked")
    (scope,) = seen
    assert (scope["method"], scope["path"], scope["query_string"]) == ("POST", "/", b"a=1")
    assert scope["headers"] == [(b"x-one", b"1")]
    assert scope["mine"] == "there"


def test_nobody_waits_for_what_follows_an_answer(loop: asyncio.AbstractEventLoop) -> None:
    told: list[Message] = []
    may_end = threading.Event()

    async def app(_scope: Message, receive: Any, send: Any) -> None:
        await receive()
        await _answer(send, b"done")
        told.append(await receive())
        while not may_end.is_set():
            await asyncio.sleep(0.01)
        told.append({"type": "ended"})

    assert Mounted(app, loop).ask(_request()).body == b"done"
    assert {"type": "ended"} not in told

    may_end.set()
    until(lambda: len(told) == 2, saying="the application has ended")
    assert told[0] == {"type": "http.disconnect"}


def test_what_the_application_raises_is_raised(loop: asyncio.AbstractEventLoop) -> None:
    async def app(_scope: Message, _receive: Any, _send: Any) -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        Mounted(app, loop).ask(_request())


def test_an_application_that_answers_nothing_is_an_error_and_keeps_nobody_waiting(
    loop: asyncio.AbstractEventLoop,
) -> None:
    async def silent(_scope: Message, _receive: Any, _send: Any) -> None: ...

    with pytest.raises(Unavailable):
        Mounted(silent, loop).ask(_request())


def test_one_that_never_ends_is_given_up_in_time_and_then_ended(
    loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory_core.limits.MCP_AFTERWORK_SECONDS", 0.05)
    ended = threading.Event()

    async def app(_scope: Message, _receive: Any, _send: Any) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    with pytest.raises(Unavailable):
        Mounted(app, loop).ask(_request(), seconds=0.05)
    assert ended.wait(20)


def test_an_error_behind_an_answer_takes_nothing_from_it(
    loop: asyncio.AbstractEventLoop, caplog: pytest.LogCaptureFixture
) -> None:
    async def app(_scope: Message, _receive: Any, send: Any) -> None:
        await _answer(send, b"kept")
        raise ValueError("too late")

    assert Mounted(app, loop).ask(_request()).body == b"kept"
    until(
        lambda: "mcp_afterwork" in [getattr(each, "action", "") for each in caplog.records],
        saying="it is logged",
    )


def test_many_ask_at_once_and_each_gets_its_own_answer(loop: asyncio.AbstractEventLoop) -> None:
    async def app(_scope: Message, receive: Any, send: Any) -> None:
        body = (await receive())["body"]
        await asyncio.sleep(0)
        await _answer(send, body)

    mounted, got = Mounted(app, loop), dict[int, bytes]()
    threads = [
        threading.Thread(target=lambda n=n: got.update({n: mounted.ask(_request(b"%d" % n)).body}))
        for n in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert got == {n: b"%d" % n for n in range(20)}

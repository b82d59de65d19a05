"""What a program holds while it reads a session back: its history and one line, however long the transcript is."""

from __future__ import annotations

import json
import tracemalloc
import weakref
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from client.durable import history
from client.durable.directory import identity_of
from client.durable.port import Event
from client.durable.routes import HttpSession
from client.durable.transport import _parsed_lines
from memory_core import limits
from memory_core.domain.agent_message import Role, payload, said
from memory_core.errors import Corrupt, Unavailable

MESSAGES = 20


class Answer:
    """A transport whose replay is what a function says, line by line."""

    def __init__(self, lines: Callable[[], Iterator[Any]]) -> None:
        self._lines = lines

    def lines(self, *_: Any, **__: Any) -> Iterator[Any]:
        return self._lines()


def session_of(tmp_path: Path, lines: Callable[[], Iterator[Any]]) -> HttpSession:
    return HttpSession(Answer(lines), "s", identity_of(tmp_path, {"MEMORYD_HOST_ID": "h"}))  # type: ignore[arg-type]


def event(sequence: int, kind: str, told: Any) -> dict[str, Any]:
    return {"sequence": sequence, "kind": kind, "payload": told}


def audit(number: int) -> dict[str, Any]:
    return {"record": "agent_event", "version": 1, "ordinal": number, "event": {"text": "y" * 1_000}}


def transcript(count: int, wrapped: Callable[[dict[str, Any]], dict[str, Any]] = dict) -> Iterator[Any]:
    """So many events, `MESSAGES` of them messages, as they come off the wire."""
    yield {"head": {"session": "s", "snapshot": None}}
    for number in range(1, count + 1):
        if number % (count // MESSAGES) == 0:
            role = Role.USER if number // (count // MESSAGES) % 2 else Role.ASSISTANT
            yield {"event": event(number, f"{role.value}_message", payload(said(role, f"word {number}")))}
        else:
            # Text of its own, as the parser makes it.
            yield {"event": event(number, "audit", wrapped(json.loads(json.dumps(audit(number)))))}
    yield {"end": {"last_sequence": count, "digest": "00"}}


def test_no_event_outlives_the_next_one(tmp_path: Path):
    class Payload(dict[str, Any]):
        """That can be watched."""

    alive: list[weakref.ref[Payload]] = []
    most = 0

    def watched(told: dict[str, Any]) -> Payload:
        nonlocal most
        made = Payload(told)
        alive.append(weakref.ref(made))
        alive[:] = [one for one in alive if one() is not None]
        most = max(most, len(alive))
        return made

    read = history.Reader()
    replay = session_of(tmp_path, lambda: transcript(2_000, watched)).replay(read.take)

    assert replay.last_sequence == 2_000
    assert len(read.history()) == MESSAGES
    # The one that is made, and the one before it, which the loop still names.
    assert most <= 2


def peak(tmp_path: Path, count: int) -> int:
    read = history.Reader()
    session = session_of(tmp_path, lambda: transcript(count))
    tracemalloc.start()
    try:
        session.replay(read.take)
        assert len(read.history()) == MESSAGES
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_the_peak_does_not_grow_with_the_transcript(tmp_path: Path):
    peak(tmp_path, 200)
    short, long = peak(tmp_path, 1_000), peak(tmp_path, 10_000)

    # Ten million bytes of events more.
    assert long - short < 64 * limits.KIB


@pytest.mark.parametrize("count", [limits.HISTORY_MESSAGES_MAX + 1, 2 * limits.HISTORY_MESSAGES_MAX])
def test_of_what_is_no_history_nothing_is_kept(count: int):
    read = history.Reader()
    for number in range(1, count + 1):
        read.take(Event(sequence=number, kind="user_message", payload=payload(said(Role.USER, "again"))))

    assert read._messages == []
    with pytest.raises(Corrupt, match="compact the session"):
        read.history()


def test_the_first_thing_that_is_wrong_is_told_and_not_before_the_end():
    read = history.Reader()
    read.take(Event(sequence=1, kind="user_message", payload={"record": "what is this"}))
    read.take(Event(sequence=2, kind="nothing", payload={}))

    with pytest.raises(Corrupt, match="event 1 "):
        read.history()


def test_no_line_is_read_that_is_longer_than_an_event_can_be():
    class Counted(BytesIO):
        most = 0

        def readline(self, size: int | None = -1) -> bytes:
            line = super().readline(size)
            self.most = max(self.most, len(line))
            return line

    body = Counted(b'"' + b"x" * 4_000 + b'"\n')

    with pytest.raises(Unavailable, match="longer than it may be"):
        list(_parsed_lines(body, 1_000_000, 1_000))
    assert body.most == 1_001
    body.seek(0)
    assert list(_parsed_lines(body, 1_000_000, 5_000)) == ["x" * 4_000]

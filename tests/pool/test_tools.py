"""What a kind is given in its compute child: questions to the gate through the parent, cancelling, progress."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pytest

from memory_core import limits
from memory_core.clock import FakeClock
from memory_core.config import Settings
from memory_core.errors import Unavailable
from tests.pool.one_slot import in_background
from workers.pool import frames
from workers.pool.tools import ChildTools, Conversation


class NotedModels:
    """In the place of the configured ones: notes with what they were asked for."""

    def __init__(self) -> None:
        self.given: list[tuple[str, Any, Any]] = []

    def language_model(self, ask: Any, cancelled: Any) -> str:
        self.given.append(("language", ask, cancelled))
        return "a language model"

    def embedder(self, ask: Any, cancelled: Any) -> str:
        self.given.append(("embedder", ask, cancelled))
        return "an embedder"


@dataclass
class Parent:
    """The other end of the pipe."""

    talk: Conversation
    heard: IO[bytes]

    def next(self) -> Any:
        return frames.receive_from_child(self.heard)

    def reply(self, ask: frames.Ask, value: Mapping[str, Any], error: str = "") -> None:
        self.talk.answered(frames.Reply(number=ask.number, value=value, error=error))


@pytest.fixture
def parent() -> Iterator[Parent]:
    reading, writing = os.pipe()
    said = os.fdopen(writing, "wb")
    with os.fdopen(reading, "rb") as heard:
        yield Parent(talk=Conversation(said), heard=heard)
    with suppress(BrokenPipeError):
        said.close()


def tools(parent: Parent, number: int = 7, models: Any = None) -> tuple[ChildTools, FakeClock]:
    clock = FakeClock()
    return ChildTools(parent.talk, number, None, clock, models or NotedModels()), clock


def outcome(work: Callable[[], Any]) -> Callable[[], Any]:
    def run() -> Any:
        try:
            return work()
        except Unavailable as error:
            return error

    return run


def test_a_question_goes_to_the_parent_without_a_lease_and_its_answer_comes_back(parent: Parent):
    thread, answers = in_background(lambda: parent.talk.ask("/pool/model/reserve", {"call": "c"}))
    asked = parent.next()
    assert (asked.path, asked.body) == ("/pool/model/reserve", {"call": "c"})

    parent.reply(asked, {"granted": True})
    thread.join(60)

    assert answers == [{"granted": True}]


def test_each_question_has_a_number_and_a_key_of_its_own_and_gets_its_own_answer(parent: Parent):
    asking = [in_background(lambda n=n: parent.talk.ask("/pool/x", {"n": n})) for n in range(3)]
    asked = [parent.next() for _ in asking]
    assert len({one.number for one in asked}) == len({one.key for one in asked}) == 3

    for one in reversed(asked):
        parent.reply(one, {"answer": one.body["n"]})
    for thread, _ in asking:
        thread.join(60)

    assert [answers for _, answers in asking] == [[{"answer": n}] for n in range(3)]


def test_an_error_of_the_gate_is_named_by_its_code(parent: Parent):
    thread, answers = in_background(outcome(lambda: parent.talk.ask("/pool/x", {})))

    parent.reply(parent.next(), {}, error="forbidden")
    thread.join(60)

    assert isinstance(answers[0], Unavailable)
    assert "forbidden" in str(answers[0])


def test_no_answer_in_time_ends_the_question_and_a_late_one_disturbs_no_other(
    parent: Parent, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(limits, "POOL_ASK_SECONDS", 0.05)
    with pytest.raises(Unavailable, match="did not answer"):
        parent.talk.ask("/pool/x", {})
    late = parent.next()
    monkeypatch.setattr(limits, "POOL_ASK_SECONDS", 20.0)

    thread, answers = in_background(lambda: parent.talk.ask("/pool/y", {}))
    asked = parent.next()
    parent.reply(late, {"answer": "late"})
    parent.reply(asked, {"answer": "mine"})
    thread.join(60)

    assert answers == [{"answer": "mine"}]


def test_a_parent_that_is_gone_is_an_error_and_no_hang(parent: Parent):
    parent.heard.close()

    with pytest.raises(OSError, match="pipe"):
        parent.talk.ask("/pool/x", {})


def test_models_ask_through_the_conversation_and_hear_of_a_cancel(parent: Parent):
    models = NotedModels()
    given, _ = tools(parent, 7, models)

    assert (given.model, given.embedder) == ("a language model", "an embedder")
    for _, ask, cancelled in models.given:
        assert ask == parent.talk.ask
        assert not cancelled()
    parent.talk.cancel(7)
    assert all(cancelled() for _, _, cancelled in models.given)


def test_a_cancel_is_for_one_work_and_is_forgotten_with_it(parent: Parent):
    (one, _), (other, _) = tools(parent, 1), tools(parent, 2)

    parent.talk.cancel(1)
    assert (one.cancelled(), other.cancelled()) == (True, False)

    parent.talk.forget(1)
    assert not one.cancelled()


def test_progress_is_cut_and_what_comes_too_soon_is_left_out(parent: Parent):
    given, clock = tools(parent)
    given.progress("x" * 1000)
    given.progress("too soon")
    clock.advance(limits.POOL_PROGRESS_SECONDS)
    given.progress("later")

    said = [parent.next() for _ in range(2)]
    assert [len(said[0].text), said[1].text] == [limits.POOL_PROGRESS_MAX_CHARS, "later"]
    assert {one.number for one in said} == {7}


def test_threads_that_speak_at_once_do_not_mix_their_messages(parent: Parent):
    texts = [str(n) * 150 for n in range(8)]
    speaking = [
        threading.Thread(target=parent.talk.say, args=(frames.Progress(number=n, text=text),))
        for n, text in enumerate(texts)
    ]
    for thread in speaking:
        thread.start()

    heard = [parent.next() for _ in speaking]

    assert {one.number: one.text for one in heard} == dict(enumerate(texts))


def test_where_the_data_lies_is_told_to_those_alone_who_may_read_it(parent: Parent):
    settings = Settings(data_dir=Path("/nowhere"))

    assert ChildTools(parent.talk, 1, settings, FakeClock(), NotedModels()).data is settings  # type: ignore[arg-type]
    assert tools(parent)[0].data is None

"""Turns at searching: at most so many here, others elsewhere, and nobody is left without an answer."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from memory_core import limits
from memory_core.recall.turns import Lost, Turns
from tests.patience import until


class _Desk:
    """Answers here, and counts how many it answers at once."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self._lock = threading.Lock()
        self.may_go = threading.Event()
        self.may_go.set()

    def answer(self) -> str:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
        assert self.may_go.wait(30)
        with self._lock:
            self.now -= 1
        return "here"


def test_so_many_answer_here_at_once_and_no_more() -> None:
    turns, desk = Turns[str, str](2), _Desk()

    with ThreadPoolExecutor(12) as threads:
        answers = list(threads.map(lambda n: turns.answer(str(n), desk.answer), range(60)))

    assert answers == ["here"] * 60
    assert desk.most <= 2


def test_who_finds_no_turn_here_is_answered_elsewhere() -> None:
    turns, desk = Turns[str, str](1), _Desk()
    turns.add(lambda question: f"{question} elsewhere")
    desk.may_go.clear()
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(turns.answer, "a", desk.answer)
        until(lambda: desk.now == 1, saying="the one turn here is taken")

        assert turns.answer("b", desk.answer) == "b elsewhere"

        desk.may_go.set()
        assert first.result(30) == "here"
    assert turns.answer("c", desk.answer) == "here"


def test_a_question_that_may_not_leave_is_answered_here() -> None:
    turns, desk = Turns[str, str](1), _Desk()
    turns.add(lambda question: pytest.fail(f"{question} left"))
    desk.may_go.clear()
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(turns.answer, "a", desk.answer)
        until(lambda: desk.now == 1, saying="the one turn here is taken")
        second = threads.submit(turns.answer, "b", desk.answer, may_leave=False)
        desk.may_go.set()

        assert (first.result(30), second.result(30)) == ("here", "here")


def test_an_answer_that_is_lost_elsewhere_is_given_here_and_nobody_is_sent_there_again() -> None:
    turns, desk, asked = Turns[str, str](1), _Desk(), []

    def lost(question: str) -> str:
        asked.append(question)
        raise Lost

    turns.add(lost)
    desk.may_go.clear()
    with ThreadPoolExecutor(3) as threads:
        answers = [threads.submit(turns.answer, name, desk.answer) for name in "abc"]
        until(lambda: len(asked) == 1, saying="one was sent elsewhere")
        desk.may_go.set()

        assert [answer.result(30) for answer in answers] == ["here"] * 3
    assert len(asked) == 1


def test_an_error_is_raised_and_the_turn_given_back() -> None:
    turns, desk = Turns[str, str](1), _Desk()

    def broken() -> str:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        turns.answer("a", broken)
    assert turns.answer("b", desk.answer) == "here"


def test_that_somebody_waited_long_is_told_and_that_nobody_had_to_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "SEARCH_WAIT_SECONDS", 0.0)
    turns, desk, told = Turns[str, str](1), _Desk(), threading.Event()
    turns.somebody_waited = told.set
    turns.answer("a", desk.answer)
    assert not told.is_set()
    desk.may_go.clear()
    with ThreadPoolExecutor(2) as threads:
        answers = [threads.submit(turns.answer, name, desk.answer) for name in "ab"]
        until(lambda: desk.now == 1, saying="one has the turn")
        desk.may_go.set()

        assert [answer.result(30) for answer in answers] == ["here", "here"]
    assert told.is_set()

"""Sharing appends: each caller hears what became of its own commands."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from memory_core import limits
from memory_core.domain.command import Envelope
from memory_core.errors import OutcomeUnknown
from tests.queue.broker import until
from web.together import Together
from workers.queue.admission import Admission


def envelope(name: str, body: bytes = b"{}") -> Envelope:
    return Envelope(
        id=name.encode().ljust(16), name=name, version=1, body=body, body_hash=b"h" * 16,
        principal="p", token_scope="capture", recorded_at=1,
    )  # fmt: skip


class Queue:
    """Holds the first append until told, and takes at most `room` commands."""

    def __init__(self) -> None:
        self.groups: list[list[str]] = []
        self.room = 1_000
        self.error: Exception | None = None
        self.go_on = threading.Event()

    def append(self, envelopes: Sequence[Envelope]) -> Admission:
        self.groups.append([e.name for e in envelopes])
        if len(self.groups) == 1:
            assert self.go_on.wait(60)
        elif self.error is not None:
            raise self.error
        accepted = min(self.room, len(envelopes))
        self.room -= accepted
        is_whole = accepted == len(envelopes)
        return Admission(
            accepted=accepted,
            refused=None if is_whole else "entries",
            retry_after_seconds=2.0,
            must_ring=True,
        )


def held(
    queue: Queue, together: Together, pool: ThreadPoolExecutor, *calls: list[Envelope]
) -> list[Future[Any]]:
    """Start a first append that is held, then `calls` one after the other; let them go together."""
    first = pool.submit(together.append, [envelope("first")])
    until(lambda: queue.groups)
    futures: list[Future[Any]] = []
    for number, call in enumerate(calls, start=1):
        futures.append(pool.submit(together.append, call))
        until(lambda number=number: len(together._waiting) == number)
    queue.go_on.set()
    assert first.result(5).accepted == 1
    return futures


@pytest.fixture
def pool() -> Any:
    with ThreadPoolExecutor(8) as pool:
        yield pool


def test_what_waits_goes_together_and_in_order(pool: ThreadPoolExecutor) -> None:
    queue = Queue()
    futures = held(queue, Together(queue.append), pool, [envelope("a"), envelope("b")], [envelope("c")])
    assert [future.result(5).accepted for future in futures] == [2, 1]
    assert queue.groups == [["first"], ["a", "b", "c"]]
    assert [future.result(5).must_ring for future in futures] == [True, False]


def test_a_mark_in_the_middle_is_the_answer_of_those_behind_it(pool: ThreadPoolExecutor) -> None:
    queue = Queue()
    queue.room = 1 + 2
    futures = held(
        queue, Together(queue.append), pool, [envelope("a")], [envelope("b"), envelope("c")], [envelope("d")]
    )
    answers = [future.result(5) for future in futures]
    assert [(answer.accepted, answer.refused) for answer in answers] == [
        (1, None),
        (1, "entries"),
        (0, "entries"),
    ]
    assert [answer.retry_after_seconds for answer in answers] == [0.0, 2.0, 2.0]


def test_an_unknown_outcome_is_everybodys_and_the_next_append_is_new(pool: ThreadPoolExecutor) -> None:
    queue = Queue()
    queue.error = OutcomeUnknown()
    together = Together(queue.append)
    for future in held(queue, together, pool, [envelope("a")], [envelope("b")]):
        with pytest.raises(OutcomeUnknown):
            future.result(5)
    queue.error = None
    assert together.append([envelope("c")]).accepted == 1


def test_a_large_body_waits_for_nobody(pool: ThreadPoolExecutor) -> None:
    queue = Queue()
    together = Together(queue.append)
    first = pool.submit(together.append, [envelope("first")])
    until(lambda: queue.groups)
    large = envelope("large", b"x" * (limits.INLINE_COMMAND_MAX_BYTES + 1))
    assert together.append([large]).accepted == 1
    queue.go_on.set()
    assert first.result(5).accepted == 1


def test_a_group_has_a_size(pool: ThreadPoolExecutor) -> None:
    queue = Queue()
    half = b"x" * limits.INLINE_COMMAND_MAX_BYTES
    calls = [[envelope(f"e{n}", half), envelope(f"f{n}", half)] for n in range(4)]
    for future in held(queue, Together(queue.append), pool, *calls):
        assert future.result(5).accepted == 2
    assert [len(group) for group in queue.groups] == [1, 4, 4]

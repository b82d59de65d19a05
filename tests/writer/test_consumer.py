"""When the consumer of doorbells is said to hang."""

from __future__ import annotations

import threading
from collections.abc import Callable

from celery import Celery
from redis.exceptions import ConnectionError as BrokerAway

from memory_core import limits
from memory_core.clock import FakeClock
from workers.celery_app import DRAIN_TASK
from workers.writer.celery_worker import Consumer


def consumer(clock: FakeClock, waiting: Callable[[], int]) -> tuple[Consumer, Celery]:
    app = Celery("test", set_as_current=False)
    made = Consumer(
        app, "i", lambda: {"applied": 0}, waiting=waiting, clock=clock, stopping=threading.Event()
    )
    return made, app


def test_doorbells_that_nobody_answers_are_noticed_and_an_answer_ends_that():
    clock = FakeClock()
    watched, app = consumer(clock, lambda: 3)
    assert not watched.hangs()

    clock.advance(limits.CONSUMER_SILENT_SECONDS + 1)
    assert watched.hangs()

    app.tasks[DRAIN_TASK]()
    assert not watched.hangs()


def test_silence_without_doorbells_is_no_fault():
    clock = FakeClock()
    watched, _ = consumer(clock, lambda: 0)

    clock.advance(3600)

    assert not watched.hangs()


def test_a_broker_that_is_away_is_not_blamed_on_the_consumer():
    def away() -> int:
        raise BrokerAway

    clock = FakeClock()
    watched, _ = consumer(clock, away)

    clock.advance(3600)

    assert not watched.hangs()

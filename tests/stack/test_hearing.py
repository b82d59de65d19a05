"""When a Celery consumer is said to hear nothing any more."""

from __future__ import annotations

from redis.exceptions import ConnectionError as BrokerAway

from memory_core import limits
from memory_core.clock import FakeClock
from workers.hearing import Hearing

LONG = limits.CONSUMER_SILENT_SECONDS + 1


class Broker:
    def __init__(self, **waiting: int) -> None:
        self.waiting = waiting
        self.is_away = False

    def __call__(self, queue: str) -> int:
        if self.is_away:
            raise BrokerAway
        return self.waiting.get(queue, 0)


def hearing(broker: Broker) -> tuple[Hearing, FakeClock]:
    clock = FakeClock()
    return Hearing(("a", "b"), broker, clock), clock


def test_doorbells_that_wait_too_long_at_one_queue_are_noticed_and_an_answer_ends_that():
    watched, clock = hearing(Broker(a=3))
    assert watched.deaf_to() is None

    clock.advance(LONG)
    watched.heard("b")
    assert watched.deaf_to() == "a"

    watched.heard("a")
    assert watched.deaf_to() is None


def test_silence_without_doorbells_is_no_fault():
    watched, clock = hearing(Broker())
    for _ in range(3):
        assert watched.deaf_to() is None
        clock.advance(3600)


def test_the_first_doorbell_after_a_long_silence_is_given_time():
    broker = Broker()
    watched, clock = hearing(broker)
    watched.heard("a")
    clock.advance(3600)

    broker.waiting["a"] = 1
    assert watched.deaf_to() is None
    clock.advance(2)
    assert watched.deaf_to() is None


def test_doorbells_that_come_and_go_are_heard_by_somebody():
    broker = Broker(a=1)
    watched, clock = hearing(broker)
    for _ in range(20):
        assert watched.deaf_to() is None
        clock.advance(2)
        broker.waiting["a"] = 0
        assert watched.deaf_to() is None
        clock.advance(2)
        broker.waiting["a"] = 1


def test_a_broker_that_is_away_is_not_blamed_on_the_consumer():
    broker = Broker(a=3)
    watched, clock = hearing(broker)
    assert watched.deaf_to() is None
    broker.is_away = True
    clock.advance(3600)
    assert watched.deaf_to() is None

    # Back again, with the doorbells of before: it has time to hear them.
    broker.is_away = False
    assert watched.deaf_to() is None
    clock.advance(LONG)
    assert watched.deaf_to() == "a"

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest

from memory_core.clock import SystemClock
from memory_core.errors import Unavailable
from tests.queue.broker import Broker, until
from workers.queue.connect import subscriber_client
from workers.queue.doorbell import Doorbell
from workers.queue.keys import Keys
from workers.queue.replies import Replies, publish

ONE, TWO = b"1" * 16, b"2" * 16


@pytest.fixture
def replies_factory(broker: Broker, keys: Keys) -> Iterator[Callable[[], Replies]]:
    made = []

    def make() -> Replies:
        made.append(Replies(lambda: subscriber_client(broker.url), keys, SystemClock()))
        return made[-1]

    yield make
    for replies in made:
        replies.close()


def soon(seconds: float = 60.0) -> float:
    return time.monotonic() + seconds


def test_a_reply_wakes_who_waits_for_it_and_nobody_else(ends: SimpleNamespace, replies_factory):
    replies = replies_factory()
    replies.ensure_subscribed(60.0)

    with replies.expect([ONE]) as mine, replies.expect([TWO]) as other:
        publish(ends.client, ends.keys, [b"0" * 16, ONE])

        assert mine.wait(soon())
        assert not other.wait(soon(0.0))


def test_who_waits_for_many_is_woken_when_the_last_was_named(ends: SimpleNamespace, replies_factory):
    replies = replies_factory()
    replies.ensure_subscribed(60.0)

    with replies.expect([ONE, TWO]) as waiter, replies.expect([ONE]) as witness:
        publish(ends.client, ends.keys, [ONE])
        assert witness.wait(soon())
        assert not waiter.wait(soon(0.0))

        publish(ends.client, ends.keys, [TWO])
        assert waiter.wait(soon())


def test_who_waits_for_fewer_after_all_is_woken_by_what_came_before(ends: SimpleNamespace, replies_factory):
    replies = replies_factory()
    replies.ensure_subscribed(60.0)

    with replies.expect([ONE, TWO]) as waiter, replies.expect([ONE]) as witness:
        publish(ends.client, ends.keys, [ONE])
        assert witness.wait(soon())

        waiter.expect_only([ONE])

        assert waiter.wait(soon(0.0))


def test_without_a_reply_the_deadline_ends_the_wait(replies_factory):
    replies = replies_factory()
    replies.ensure_subscribed(60.0)

    with replies.expect([ONE]) as waiter:
        assert not waiter.wait(soon(0.02))


def test_replies_of_another_install_are_not_heard(ends: SimpleNamespace, replies_factory):
    replies = replies_factory()
    replies.ensure_subscribed(60.0)

    with replies.expect([ONE]) as waiter, replies.expect([TWO]) as witness:
        publish(ends.client, Keys("other"), [ONE])
        publish(ends.client, ends.keys, [TWO])

        assert witness.wait(soon())
        assert not waiter.wait(soon(0.0))


def test_a_new_subscription_wakes_all_because_it_may_have_missed_something(
    ends: SimpleNamespace, replies_factory
):
    replies = replies_factory()
    replies.ensure_subscribed(60.0)

    with replies.expect([ONE]) as waiter:
        ends.client.client_kill_filter(_type="pubsub")

        assert waiter.wait(soon())
        until(lambda: replies.is_subscribed)
        publish(ends.client, ends.keys, [ONE])
        assert waiter.wait(soon())


def test_without_a_broker_nothing_may_be_appended_that_is_waited_for(keys: Keys, tmp_path):
    replies = Replies(lambda: subscriber_client(f"unix://{tmp_path}/none"), keys, SystemClock())

    with pytest.raises(Unavailable):
        replies.ensure_subscribed(0.1)

    replies.close()


def test_a_listener_that_was_closed_ends_without_a_word(replies_factory, caplog: pytest.LogCaptureFixture):
    before = set(threading.enumerate())
    replies = replies_factory()
    replies.ensure_subscribed(60.0)
    [listener] = set(threading.enumerate()) - before

    replies.close()

    until(lambda: not listener.is_alive())
    assert not caplog.records


def test_a_subscription_that_a_stopped_broker_holds_is_given_up_and_renewed(broker: Broker, replies_factory):
    replies = replies_factory()
    replies.ensure_subscribed(60.0)
    broker.stop()
    try:
        until(lambda: not replies.is_subscribed)
    finally:
        broker.resume()

    replies.ensure_subscribed(60.0)


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")  # a fork is what is tested
def test_a_forked_child_subscribes_for_itself(ends: SimpleNamespace, replies_factory):
    replies = replies_factory()
    replies.ensure_subscribed(60.0)

    def wait_in_child(pipe) -> None:
        replies.ensure_subscribed(60.0)
        with replies.expect([ONE]) as waiter:
            pipe.send("waiting")
            pipe.send(waiter.wait(soon()))

    ours, theirs = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=wait_in_child, args=(theirs,))
    child.start()
    assert ours.recv() == "waiting"
    publish(ends.client, ends.keys, [ONE])

    assert ours.poll(60)
    assert ours.recv() is True
    child.join(60)
    assert child.exitcode == 0


# --- the doorbell -------------------------------------------------------------------------------


def test_a_slow_ring_delays_no_request_and_one_more_at_most_waits():
    rung, go_on = [], threading.Event()

    def ring() -> None:
        rung.append(1)
        go_on.wait(60)

    doorbell = Doorbell(ring)
    doorbell.ring()
    until(lambda: rung)

    started = time.monotonic()
    for _ in range(100):
        doorbell.ring()
    assert time.monotonic() - started < 30.0

    go_on.set()
    until(lambda: len(rung) == 2)
    doorbell.close()
    assert len(rung) == 2


def test_a_ring_that_fails_fails_nothing_else():
    rung = []

    def ring() -> None:
        rung.append(1)
        raise RuntimeError("no bell")

    doorbell = Doorbell(ring)
    doorbell.ring()
    until(lambda: len(rung) == 1)
    doorbell.ring()

    until(lambda: len(rung) == 2)
    doorbell.close()


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")  # a fork is what is tested
def test_a_forked_child_rings_with_a_thread_of_its_own():
    ours, theirs = multiprocessing.Pipe()
    doorbell = Doorbell(lambda: theirs.send("rung"))
    doorbell.ring()
    assert ours.recv() == "rung"

    def ring_in_child() -> None:
        doorbell.ring()
        until(lambda: ours.poll())

    child = multiprocessing.get_context("fork").Process(target=ring_in_child)
    child.start()

    child.join(60)
    assert child.exitcode == 0
    assert ours.recv() == "rung"
    doorbell.close()

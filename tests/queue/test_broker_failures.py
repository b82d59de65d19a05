"""What the gate answers, and how fast, when the broker is stopped, dead or dies at the worst moment."""

from __future__ import annotations

import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from redis.exceptions import RedisError

from memory_core import limits
from memory_core.domain.command import Envelope
from memory_core.errors import OutcomeUnknown, Unavailable
from tests.patience import SECONDS, as_shipped
from tests.queue.broker import Broker, until
from tests.queue.conftest import disk_of, make_envelope
from workers.queue.connect import admission_client

#: Half of what the gate of these tests waits for (`tests/patience.py`), and many times what the product waits for.
SLACK_SECONDS = SECONDS / 2


@pytest.fixture
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """One of its own for each test: these harm it."""
    broker = Broker(tmp_path_factory.mktemp("broker"))
    broker.start()
    yield broker
    broker.close()


@pytest.fixture
def gate(ends: SimpleNamespace, end_factory: Callable[..., SimpleNamespace]) -> SimpleNamespace:
    """Another gate to the queue of `ends`, with the limits that the product has."""
    with as_shipped():
        return end_factory()


def is_reached(gate: SimpleNamespace) -> bool:
    """On a crowded machine not at once, with these limits."""
    try:
        return gate.gate.ping()
    except RedisError:
        return False


def seconds_until_refused(ends: SimpleNamespace, error: type[Exception], envelope: Envelope) -> float:
    started = time.monotonic()
    with pytest.raises(error):
        ends.queue.append([envelope])
    return time.monotonic() - started


@pytest.mark.parametrize("is_connected", [True, False])
def test_a_stopped_broker_leaves_the_outcome_unknown_and_then_takes_effect_once(
    broker: Broker, ends: SimpleNamespace, gate: SimpleNamespace, is_connected: bool
):
    ends.queue.append([make_envelope()])
    if is_connected:
        until(lambda: is_reached(gate))
    envelope = make_envelope()
    broker.stop()

    took = seconds_until_refused(gate, OutcomeUnknown, envelope)

    assert took < SLACK_SECONDS
    broker.resume()
    assert ends.queue.append([make_envelope()]).accepted == 1
    until(lambda: ends.client.xlen(ends.keys.commands) == 3)
    read = [entry.envelope for entry in ends.reader.read(10, 0)]
    assert read.count(envelope) == 1


@pytest.mark.parametrize("is_connected", [True, False])
def test_a_dead_broker_is_told_at_once_and_found_again(
    broker: Broker, ends: SimpleNamespace, gate: SimpleNamespace, is_connected: bool
):
    if is_connected:
        until(lambda: is_reached(gate))
    broker.kill()

    took = seconds_until_refused(gate, Unavailable, make_envelope())

    assert took < SLACK_SECONDS
    broker.start()
    until(lambda: is_reached(gate))
    assert ends.queue.append([make_envelope()]).accepted == 1
    assert ends.client.xlen(ends.keys.commands) == 1


def test_a_command_that_the_stopped_broker_got_in_part_is_known_not_to_be_kept(
    broker: Broker, ends: SimpleNamespace, gate: SimpleNamespace
):
    envelopes = [make_envelope(b"x" * 200_000) for _ in range(40)]  # more than a socket holds
    broker.stop()

    with pytest.raises(Unavailable):
        gate.queue.append(envelopes)

    broker.resume()
    ends.client.ping()
    until(lambda: len(ends.client.client_list()) == 1)  # the broker saw the cut connection end
    assert ends.client.xlen(ends.keys.commands) == 0


def test_large_bodies_stay_when_the_outcome_is_unknown(
    broker: Broker, ends: SimpleNamespace, gate: SimpleNamespace
):
    ends.queue.append([make_envelope()])
    until(lambda: is_reached(gate))
    envelope = make_envelope(b"x" * (limits.INLINE_COMMAND_MAX_BYTES + 1))
    broker.stop()
    with pytest.raises(OutcomeUnknown):
        gate.queue.append([envelope])

    broker.resume()

    until(lambda: ends.client.xlen(ends.keys.commands) == 2)
    assert [entry.envelope for entry in ends.reader.read(10, 0)][1] == envelope


def test_a_large_body_is_not_left_behind_when_nothing_was_kept(broker: Broker, ends: SimpleNamespace):
    broker.kill()

    with pytest.raises(Unavailable):
        ends.queue.append([make_envelope(b"x" * (limits.INLINE_COMMAND_MAX_BYTES + 1))])

    assert list(ends.incoming._directory.iterdir()) == []


def test_below_the_floor_of_the_disk_the_broker_is_not_even_asked(broker: Broker, end_factory):
    ends = end_factory(statvfs=disk_of(0))
    broker.kill()

    assert ends.queue.append([make_envelope()]).refused == "disk"


def test_what_was_accepted_survives_the_death_of_the_broker(broker: Broker, ends: SimpleNamespace):
    sent = [make_envelope() for _ in range(20)]
    for envelope in sent:
        ends.queue.append([envelope])

    broker.kill()
    broker.start()

    entries = ends.reader.read(100, 0)
    assert [entry.envelope for entry in entries] == sent
    assert int(ends.client.get(ends.keys.bytes)) == sum(entry.size for entry in entries)


def test_a_reader_meets_the_death_of_the_broker_with_one_error_and_goes_on(
    broker: Broker, ends: SimpleNamespace
):
    envelope = make_envelope()
    ends.queue.append([envelope])
    entries = ends.reader.read(10, 0)
    broker.kill()

    with pytest.raises(Unavailable):
        ends.reader.delete(entries, 1, "aa")
    ends.reader.forget_tail()
    with pytest.raises(Unavailable):
        ends.reader.read(10, 100)
    broker.start()

    [entry] = ends.reader.read(10, 1_000)
    assert entry.envelope == envelope
    assert ends.reader.delete([entry], 1, "aa") == 1


def test_a_broker_that_hangs_up_after_the_command_leaves_the_outcome_unknown(
    ends: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
):
    with tempfile.TemporaryDirectory() as directory, socket.socket(socket.AF_UNIX) as listener:
        path = Path(directory) / "s"
        listener.bind(str(path))
        listener.listen()

        def hang_up() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1 << 20)

        thread = threading.Thread(target=hang_up)
        thread.start()
        monkeypatch.setattr(ends.queue, "_client", admission_client(f"unix://{path}"))

        with pytest.raises(OutcomeUnknown):
            ends.queue.append([make_envelope()])
        thread.join()

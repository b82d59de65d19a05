"""The queue against a plain list: whatever happens in whatever order, the counters tell the truth."""

from __future__ import annotations

import secrets
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from memory_core import limits
from memory_core.domain.command import Envelope
from tests.queue.conftest import make_envelope
from workers.queue.keys import Keys
from workers.queue.wire import pack

MAX_BYTES, MAX_ENTRIES = 3_000, 8


@pytest.fixture
def small_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BACKLOG_MAX_BYTES", MAX_BYTES)
    monkeypatch.setattr(limits, "BACKLOG_MAX_ENTRIES", MAX_ENTRIES)
    monkeypatch.setattr(limits, "BACKLOG_MAX_AGE_SECONDS", 1_000.0)


@pytest.mark.usefixtures("small_marks")
def test_appends_and_deletions_in_any_order_keep_stream_and_counters_true(end_factory: Any):
    class Queue(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.ends = end_factory(Keys(secrets.token_hex(8)))
            self.model: list[Envelope] = []
            self.read: list[Any] = []
            self.done: list[Any] = []

        @rule(sizes=st.lists(st.integers(0, 900), min_size=1, max_size=4))
        def append(self, sizes: list[int]) -> None:
            sent = [make_envelope(b"x" * size) for size in sizes]
            kept: list[Envelope] = []
            for envelope in sent:
                waiting = self.model + kept
                if len(waiting) >= MAX_ENTRIES or bytes_of([*waiting, envelope]) > MAX_BYTES:
                    break
                kept.append(envelope)

            admission = self.ends.queue.append(sent)

            assert admission.accepted == len(kept)
            assert (admission.refused is None) == (len(kept) == len(sent))
            self.model += kept

        @rule(count=st.integers(1, 5))
        def read_some(self, count: int) -> None:
            entries = self.ends.reader.read(count, 0)
            expected = self.model[len(self.read) :][:count]
            assert [entry.envelope for entry in entries] == expected[: len(entries)]
            assert bool(entries) == bool(expected)
            self.read += entries

        @precondition(lambda self: self.read)
        @rule(data=st.data())
        def delete_committed(self, data: st.DataObject) -> None:
            count = data.draw(st.integers(1, len(self.read)))
            assert self.ends.reader.delete(self.read[:count], 1, "aa") == count
            self.done += self.read[:count]
            del self.model[:count], self.read[:count]

        @precondition(lambda self: self.done)
        @rule(data=st.data())
        def delete_again(self, data: st.DataObject) -> None:
            assert self.ends.reader.delete([data.draw(st.sampled_from(self.done))], 1, "aa") == 0

        @rule()
        def fail_and_begin_again(self) -> None:
            self.ends.reader.forget_tail()
            self.read = []

        @rule()
        def wipe(self) -> None:
            keys = self.ends.client.keys(f"m:{self.ends.keys.install}:*")
            if keys:
                self.ends.client.delete(*keys)
            self.ends.reader.forget_tail()
            self.model, self.read = [], []

        @invariant()
        def counters_are_true(self) -> None:
            client, keys = self.ends.client, self.ends.keys
            found = client.xrange(keys.commands)
            assert [fields[b"e"] for _, fields in found] == [pack(envelope) for envelope in self.model]
            expected = str(bytes_of(self.model)).encode() if self.model else None
            assert client.get(keys.bytes) == expected
            assert client.get(keys.oldest) == (found[0][0].split(b"-")[0] if found else None)

        def teardown(self) -> None:
            self.ends.client.close()
            self.ends.gate.close()

    run_state_machine_as_test(
        Queue,
        settings=settings(
            max_examples=40, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )


def bytes_of(envelopes: list[Envelope]) -> int:
    return sum(len(pack(envelope)) for envelope in envelopes)
